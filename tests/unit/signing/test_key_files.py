"""What in a folder of keys cannot be seen, or is something else, is told with its path and a remedy."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app import private_files
from app.errors import ConfigError
from app.signing.key_files import newest_signer, read_certificate, read_root, root_file
from app.signing.keys import KeyFolder
from tests.fixtures.signing import MADE

pytestmark = pytest.mark.usefixtures("quick_encryption")


@pytest.mark.parametrize("read", [read_root, lambda folder: read_certificate(root_file(folder))], ids=["root", "certificate"])
def test_a_folder_that_this_user_may_not_enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]):
    """Whether a file is there is asked of the system, too, whose refusal is a ConfigError."""

    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(ConfigError, match=r"root\.pem: Permission denied") as told:
        read(tmp_path)
    assert told.value.advice == private_files.ACCESS


def test_what_stands_where_the_signers_should_be(key_folder: KeyFolder, keys_path: Path):
    """A file in their place is no folder without signers, in which new ones would be made."""
    shutil.rmtree(keys_path / "signers")
    (keys_path / "signers").touch()
    with pytest.raises(ConfigError, match=r"signers: is no folder") as told:
        newest_signer(keys_path)
    assert "move what is left of the keys away" in told.value.advice
    with pytest.raises(ConfigError, match=r"signers: is no folder"):
        key_folder.make(MADE)
