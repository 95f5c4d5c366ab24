"""What `sluice doctor` says of the nightly reports."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.cli import shelved_nights
from app.cli.shelved_nights import LogSays
from app.clock import SystemClock
from app.reports.shelf.compared import Manifests
from app.reports.shelf.made import SignedBefore
from app.signing.certificates import make_root
from app.signing.keys import KeyFolder
from app.signing.sm2 import PrivateKey
from app.signing.uses import REPORTS
from tests.fixtures.doctor import examine, external
from tests.fixtures.report_content import unprintable_clauses
from tests.fixtures.signing import PASSPHRASE

pytestmark = pytest.mark.usefixtures("forbidden")
UNREACHED = "postgresql://nobody@localhost:1/nothing"


@pytest.fixture
def keys(tmp_path: Path, quick_encryption: None) -> KeyFolder:
    """The keys of a serve in `tmp_path`, made before."""
    keys = KeyFolder(tmp_path / "report-keys", PASSPHRASE, REPORTS)
    keys.open_or_make(SystemClock().utcnow())
    return keys


@pytest.fixture
def log_says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the log say what was made; else it is not reached."""

    def says(made: Manifests) -> None:
        signed = SignedBefore(len(made), datetime(2026, 11, 29, tzinfo=UTC))
        monkeypatch.setattr(shelved_nights, "ask_log", lambda *_: LogSays(made, signed, frozenset()))

    return says


def found(folder: Path, **settings: Any) -> dict[str, tuple[str, str]]:
    """Level and message by name; the passphrase is in a file unless the settings say otherwise."""
    report = {"passphrase": "file:/run/secrets/reports"} | settings.pop("report", {})
    findings = external(folder, {"report": report, **settings}, url=UNREACHED)
    return {name: (finding["level"], finding["message"]) for name, finding in findings.items()}


def test_what_reports_need_is_there(tmp_path: Path):
    """Clauses, register and folder; the keys come with the first night, at the time that is set."""
    told = found(tmp_path, report={"zone": "Asia/Shanghai"})
    assert {told[name][0] for name in ("clauses", "reports", "reportkeys", "nightly")} == {"ok"}
    assert told["reports"][1] == f"{tmp_path / 'reports'}: 0 nights"
    assert told["nightly"][1] == "serve has them made at 01:00 Asia/Shanghai of the day after"


def test_the_root_that_the_log_is_checked_under_is_named(tmp_path: Path):
    """From the file of the setting, else from the folder of the log's keys; an embedded database will have it there."""
    root = make_root(PrivateKey.generate(), datetime(2026, 1, 1, tzinfo=UTC))
    file, keys = tmp_path / "log.pem", tmp_path / "audit-keys"
    file.write_text(root.pem)
    assert found(tmp_path, report={"log_root": str(file)})["logroot"] == ("ok", f"{file}: {root.fingerprint.hex()}")
    embedded = examine("--var", str(tmp_path / "new"))[1]["logroot"]
    assert (embedded["level"], embedded["message"].split(", ")[1]) == ("ok", "made with the log")
    keys.mkdir(mode=0o700)
    shutil.copy(file, keys / "root.pem")
    (keys / "root.pem").chmod(0o600)
    assert found(tmp_path)["logroot"] == ("ok", f"{keys}: {root.fingerprint.hex()}")


def test_wording_that_the_font_lacks_is_named(tmp_path: Path):
    """A font that lacks a character of a clause is found before a night fails, and the character named."""
    folder = unprintable_clauses(tmp_path / "clauses")
    level, message = found(tmp_path, report={"clauses": str(folder)})["font"]
    assert level == "warn"
    assert "lacks characters of the reports' own wording: 😀[U+1F600]" in message


@pytest.mark.parametrize(
    ("settings", "name", "level", "says"),
    [
        ({"report": {"clauses": "."}}, "clauses", "fail", "sluice.yaml: report: Input should be"),
        ({"report": {"register_file": "none.yaml"}}, "clauses", "fail", "none.yaml"),
        ({"report": {"path": "sluice.yaml"}}, "reports", "fail", "sluice.yaml: Not a directory"),
        ({"report": {"keys": "keys"}}, "reportkeys", "warn", "has no signer yet"),
        ({"report": {"keys": "sluice.yaml"}}, "reportkeys", "fail", "report.keys: "),
        ({"report": {"keys": "audit-keys"}}, "reportkeys", "fail", "the report keys are not the log's"),
        ({}, "logroot", "warn", "report.log_root is not set: the first reports call the log unchecked"),
        ({"report": {"log_root": "none.pem"}}, "logroot", "fail", "none.pem: No such file"),
        ({"report": {"passphrase": ""}}, "nightly", "warn", "serve has no reports made"),
        ({"report": {"passphrase": "fd:3"}}, "nightly", "warn", "a descriptor is read once"),
        ({"report": {"at": "off", "passphrase": ""}}, "nightly", "ok", "report.at is off"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, settings: dict[str, Any], name: str, level: str, says: str):
    """Each with its level; what keeps reports from being made is no reason not to decide."""
    (tmp_path / "keys").mkdir()
    told = found(tmp_path, **settings)[name]
    assert told[0] == level
    assert says in told[1]


def test_a_passphrase_that_opens_no_key_is_found_by_day(tmp_path: Path, keys: KeyFolder):
    """The newest signer is opened, where the passphrase is in a file that this user may read."""
    file = tmp_path.with_name("passphrase")
    for passphrase, level, says in ((PASSPHRASE, "ok", keys.certificate.subject), (b"another passphrase", "fail", "does not open it")):
        file.unlink(missing_ok=True)
        file.touch(0o600)
        file.write_bytes(passphrase)
        told = found(tmp_path, report={"passphrase": f"file:{file}"})["reportkeys"]
        assert told[0] == level
        assert says in told[1]
    assert "not opened: report.passphrase is a descriptor" in found(tmp_path, report={"passphrase": "fd:3"})["reportkeys"][1]
    assert found(tmp_path)["reportkeys"][0] == "fail"  # its file is not there


def test_keys_that_are_gone_after_a_night_was_signed_are_a_failure(tmp_path: Path, keys: KeyFolder, log_says: Callable[..., None]):
    """Not something that is made by itself; with the root alone, where another machine makes the reports, nothing is wrong."""
    log_says({"2026-11-29-utc-1": None})
    shutil.rmtree(keys.path / "signers")
    for at in ("01:00", "off"):
        level, message = found(tmp_path, report={"at": at})["reportkeys"]
        assert level == ("fail" if at == "01:00" else "ok")
        assert ("signed once since 2026-11-29" if at == "01:00" else "reports are signed elsewhere") in message
    shutil.rmtree(keys.path)
    assert found(tmp_path, report={"at": "off"})["reportkeys"][0] == "fail"


def test_nights_that_are_not_as_they_were_made_are_a_warning(tmp_path: Path, log_says: Callable[..., None]):
    """With their ids, and the command that says why."""
    log_says({"2026-11-29-utc-1": None})
    assert found(tmp_path)["reports"] == ("warn", f"{tmp_path / 'reports'}: 0 nights; 2026-11-29-utc-1 missing")


def test_only_the_newest_nights_are_checked_file_by_file(tmp_path: Path, log_says: Callable[..., None]):
    """Of the others a manifest that is not the log's is told; a night that cannot be checked is a warning, too."""
    newest = [f"2026-11-{day}-utc-1" for day in (30, 29, 28, 27, 26)]
    for report in newest:
        (tmp_path / "reports" / report).mkdir(parents=True)
    (tmp_path / "reports" / newest[4] / "manifest.json").write_text("{}")
    log_says({newest[4]: "00" * 32})
    level, message = found(tmp_path)["reports"]
    told = ", ".join([*(f"{report} unchecked" for report in newest[:3]), f"{newest[4]} tampered"])
    assert (level, message) == ("warn", f"{tmp_path / 'reports'}: 5 nights; {told}")
