"""The keys of reports are never the log's."""

import shutil
from pathlib import Path

import pytest

from app.errors import ConfigError
from app.settings import Settings
from app.signing.keys import KeyFolder, keys_folder
from app.signing.uses import REPORTS


@pytest.mark.parametrize("keys", ["audit-keys", "audit-keys/signers", ".", "other/../audit-keys", "link"])
def test_the_folder_of_the_log_is_refused(tmp_path: Path, keys: str):
    """The same one, one within it or around it, however it is written."""
    (tmp_path / "audit-keys").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "audit-keys")
    with pytest.raises(ConfigError, match="report keys are not the log's"):
        keys_folder(Settings.model_validate({"report": {"keys": str(tmp_path / keys)}}), tmp_path, REPORTS)


@pytest.mark.parametrize("removed", [[], ["audit-keys/signers"], ["report-keys/signers"]])
def test_a_key_of_the_log_is_refused_in_another_folder(tmp_path: Path, key_folder: KeyFolder, removed: list[str]):
    """A copy of the log's folder; of a folder without signers the root counts."""
    shutil.copytree(key_folder.path, tmp_path / "report-keys")
    for name in removed:
        shutil.rmtree(tmp_path / name)
    with pytest.raises(ConfigError, match="has a key of the log"):
        keys_folder(Settings(), tmp_path, REPORTS)


@pytest.mark.usefixtures("key_folder")
def test_keys_of_their_own_are_taken(tmp_path: Path):
    """Before there are any, too."""
    assert keys_folder(Settings(), tmp_path, REPORTS) == tmp_path / "report-keys"
