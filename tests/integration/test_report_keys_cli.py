"""`sluice report keys` where a part of the folder is lost: every remedy that is told works when it is typed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.report.keys import app
from app.clock import SystemClock
from app.errors import ConfigError
from app.signing.certificates import Certificate
from app.signing.keys import KeyFolder
from app.signing.uses import REPORTS
from tests.fixtures.signing import PASSPHRASE

Keys = Callable[..., Result]
WAY_ON = "move what is left of the folder away; then `sluice report keys init` makes new keys"

pytestmark = pytest.mark.usefixtures("quick_encryption", "forbidden")


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Runs `sluice report keys …`; errors are raised, as main() shows them."""
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "report-passphrase").touch(0o600)
    (secrets / "report-passphrase").write_bytes(PASSPHRASE)
    return lambda *arguments: CliRunner().invoke(app, [*arguments, "--var", str(tmp_path)])


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    """Keys that were made before."""
    made = KeyFolder(tmp_path / "report-keys", PASSPHRASE, REPORTS)
    made.open_or_make(SystemClock().utcnow())
    return made


def refusal(ran: Result) -> ConfigError:
    """What the command refused with."""
    assert isinstance(ran.exception, ConfigError), ran.output
    return ran.exception


def test_a_folder_that_has_the_root_alone(keys: Keys, folder: KeyFolder):
    """Its root is printed, as for who checks; new keys take another folder, and come once it is moved away, as told."""
    shutil.rmtree(folder.path / "signers")
    (folder.path / "root.key").unlink()
    printed = keys("export-public", "--root")
    assert Certificate.load_pem(printed.stdout.encode()).fingerprint == folder.root.fingerprint
    assert "has no signer yet" in refusal(keys("export-public")).message

    refused = refusal(keys("init"))
    assert "root.key: not here" in refused.message
    assert WAY_ON in refused.advice
    folder.path.rename(folder.path.with_name("away"))
    assert keys("init").exit_code == 0


def test_certificates_without_private_keys(keys: Keys, folder: KeyFolder):
    """A run and a rotation name the backup, and the way on where there is none."""
    for file in (folder.path / "root.key", folder.path / "signers" / "0001.key"):
        file.unlink()
    with pytest.raises(ConfigError, match=r"0001\.key: missing") as refused:
        folder.check(SystemClock().utcnow())
    for told in (refused.value, refusal(keys("rotate"))):
        assert WAY_ON in told.advice
    assert "move the folder away first" in refusal(keys("init")).advice


@pytest.mark.parametrize("dangling", [False, True], ids=["file", "link to nothing"])
def test_no_folder_in_its_place(keys: Keys, tmp_path: Path, dangling: bool):
    """A file, or a link to nothing, is named for what it is; nothing is made over it."""
    place = tmp_path / "report-keys"
    place.symlink_to("nothing") if dangling else place.touch()
    refused = refusal(keys("init"))
    assert refused.message == f"{place}: is no folder"
    assert refused.advice == "Move it away, or name a folder with report.keys."
    place.unlink()
    assert keys("init").exit_code == 0
