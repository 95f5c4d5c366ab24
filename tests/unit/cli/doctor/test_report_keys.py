"""What `sluice doctor` says of the keys of reports is what a run would say of them."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.cli.doctor.report_keys import report_keys
from app.cli.shelved_nights import LogSays
from app.clock import SystemClock
from app.reports.shelf.made import SignedBefore
from app.settings import load_settings
from app.signing.keys import KeyFolder
from app.signing.uses import REPORTS
from tests.fixtures.signing import PASSPHRASE

pytestmark = pytest.mark.usefixtures("quick_encryption")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    """Keys that a start made by the way."""
    keys = KeyFolder(tmp_path / "report-keys", PASSPHRASE, REPORTS)
    keys.open_or_make(SystemClock().utcnow())
    return keys


def told(var: Path, *signers: str, times: int = 0, at: str = "01:00") -> tuple[str, str]:
    """Level and message, with signers that the log has heard of and nights that were signed."""
    says = LogSays({}, SignedBefore(times, datetime(2026, 11, 29, tzinfo=UTC)) if times else None, frozenset(signers))
    finding = report_keys(load_settings(overrides=("report.passphrase=fd:3", f"report.at={at}")), var, says)
    return finding.level, finding.message


def test_keys_that_sign_nothing_are_a_failure(tmp_path: Path, keys: KeyFolder):
    """Those that were made by the way, once the log has heard of others and not of them, before any night was made."""
    assert told(tmp_path)[0] == "ok"
    assert told(tmp_path, keys.certificate.fingerprint.hex(), "00" * 32)[0] == "ok"
    level, message = told(tmp_path, "00" * 32)
    assert (level, message.split(" has ")[1]) == ("fail", "keys that were made by the way, and the log says that others sign reports")
    maker = keys.path / "signers" / "0001.by"
    maker.touch(0o600)
    maker.write_text("cli:wei")
    assert told(tmp_path, "00" * 32)[0] == "ok"


@pytest.mark.parametrize(
    ("times", "says"),
    [(0, "no keys, and the log says that there are some elsewhere, which sign reports"), (2, "signed 2 times since 2026-11-29")],
)
def test_keys_that_are_elsewhere_are_a_failure(tmp_path: Path, times: int, says: str):
    """As soon as the log has heard of a signer, whether or not it made a night."""
    level, message = told(tmp_path, "00" * 32, times=times)
    assert level == "fail"
    assert message.endswith(says)


def test_a_root_without_its_key_makes_no_signer(tmp_path: Path, keys: KeyFolder):
    """Right where others sign, for who checks; else the first night would not be made."""
    shutil.rmtree(keys.path / "signers")
    assert told(tmp_path)[0] == "warn"  # as a first start that was cut short leaves it: the next one goes on
    (keys.path / "root.key").unlink()
    assert told(tmp_path, at="off")[0] == "ok"
    assert told(tmp_path) == ("fail", f"{keys.path}: has the root alone, with no key to make a signer")


def test_a_link_to_nothing_is_no_folder(tmp_path: Path):
    """Nothing could be made there."""
    (tmp_path / "report-keys").symlink_to("nothing")
    assert told(tmp_path) == ("fail", f"report.keys: {tmp_path / 'report-keys'}: is no folder")
