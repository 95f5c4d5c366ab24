"""Keys of reports are kept as those of the log are, in a folder, with subjects, settings and a passphrase of their own."""

from pathlib import Path

import pytest

from app.errors import ConfigError
from app.settings import load_settings
from app.signing.key_files import read_certificates
from app.signing.keys import KeyFolder, keys_folder
from app.signing.passphrase import known_passphrase, passphrase_of
from app.signing.uses import LOG, REPORTS
from tests.fixtures.signing import MADE, PASSPHRASE

pytestmark = pytest.mark.usefixtures("quick_encryption")


def test_their_subjects_say_what_they_sign(tmp_path: Path):
    """Whoever reads a certificate sees whether it is of reports or of the log."""
    keys = KeyFolder(tmp_path / "keys", PASSPHRASE, REPORTS)
    keys.open_or_make(MADE)

    assert keys.root.subject.startswith("Sluice report root ")
    assert keys.certificate.subject.startswith("Sluice report signer ")


def test_where_they_are(tmp_path: Path):
    """Each in a folder of its own under --var, unless its setting names another."""
    assert keys_folder(load_settings(), tmp_path, REPORTS) == tmp_path / "report-keys"
    set_ = load_settings(overrides=("report.keys=/srv/reports", "audit.keys=/srv/log"))
    assert [keys_folder(set_, tmp_path, use) for use in (LOG, REPORTS)] == [Path("/srv/log"), Path("/srv/reports")]


def test_each_has_a_passphrase_of_its_own(tmp_path: Path):
    """For trying two files are made, and neither opens what is the other's."""
    made = {use: passphrase_of(load_settings(), tmp_path, use) for use in (LOG, REPORTS)}

    assert made[LOG] != made[REPORTS]
    assert made[REPORTS].decode() == (tmp_path / "secrets" / "report-passphrase").read_text()
    assert known_passphrase(load_settings(), tmp_path, REPORTS) == made[REPORTS]


def test_a_passphrase_does_not_lie_beside_its_keys(tmp_path: Path):
    """Nor in the folder that report.keys names."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "passphrase").write_bytes(PASSPHRASE)
    set_ = load_settings(overrides=(f"report.keys={tmp_path / 'keys'}", f"report.passphrase=file:{tmp_path / 'keys' / 'passphrase'}"))
    with pytest.raises(ConfigError, match=r"^report\.passphrase: .* lies in .*, beside the keys that it opens"):
        passphrase_of(set_, tmp_path / "var", REPORTS)


def test_with_a_database_of_your_own_it_must_be_set(tmp_path: Path):
    """No report is signed with a passphrase that lies beside its keys, unless for trying."""
    set_ = load_settings(overrides=("database.url=postgresql+psycopg://u@127.0.0.1/d", "audit.passphrase=fd:9"))
    with pytest.raises(ConfigError, match=r"report\.passphrase: not set") as refused:
        passphrase_of(set_, tmp_path, REPORTS)
    assert refused.value.field == "report.passphrase"


def test_what_is_wrong_names_the_settings_of_reports(tmp_path: Path):
    """A remedy that named the log's settings would lead astray."""
    with pytest.raises(ConfigError) as none:
        read_certificates(tmp_path / "none", REPORTS)
    keys = KeyFolder(tmp_path / "keys", PASSPHRASE, REPORTS)
    keys.open_or_make(MADE)
    with pytest.raises(ConfigError) as wrong:
        KeyFolder(tmp_path / "keys", b"another passphrase", REPORTS).open(MADE)
    with pytest.raises(ConfigError) as late:
        KeyFolder(tmp_path / "keys", PASSPHRASE, REPORTS).open(keys.root.not_after)

    assert none.value.advice.startswith("`sluice report nightly` makes one for the first night of a log")
    assert none.value.advice.endswith("; `sluice report keys import` takes yours.")
    assert "report.passphrase; where that is not set, secrets/report-passphrase" in wrong.value.advice
    assert "sluice report keys rotate" in late.value.advice
