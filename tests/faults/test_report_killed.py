"""`sluice report nightly` as operators run it beside a database of their own, ended in the middle in every way."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.cli import app as cli
from app.clock import SystemClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.observability.metrics import Metrics
from app.reports.nights.night import LATE, Night
from app.setting_sections import DatabaseSettings
from tests.fixtures.audit_process import ROOT, AuditProcess
from tests.fixtures.night import eventful
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.signing import PASSPHRASE
from tests.fixtures.waiting import wait_until

YESTERDAY = Night.containing(datetime.now(UTC) - LATE, "UTC").previous()
UNREACHED = "postgresql://nobody@localhost:1/nothing"
REPORT = f"{YESTERDAY.name}-1"


@pytest.fixture
async def var(database_urls: DatabaseUrls, sequencer_url: str, start_audit: Callable[[str], AuditProcess], tmp_path: Path) -> Path:
    """A folder with the settings of a log that began yesterday; its process runs."""
    engine = create_engine(database_urls.intake, DatabaseSettings())
    await Intake(engine, Metrics(), Gaps(SystemClock()), timeout_ms=TIMEOUT_MS).write(*eventful(YESTERDAY.begin + timedelta(hours=1)))
    await engine.dispose()
    start_audit(sequencer_url).wait_for("leading")
    var, passphrase = tmp_path / "var", tmp_path / "passphrase"
    var.mkdir()
    passphrase.write_bytes(PASSPHRASE)
    passphrase.chmod(0o600)
    urls = {
        "url": database_urls.registry,
        "owner_url": database_urls.owner,
        "intake_url": database_urls.intake,
        "log_url": database_urls.log,
    }
    settings = {"database": urls, "models": str(ROOT / "examples" / "models.yaml"), "report": {"passphrase": f"file:{passphrase}"}}
    (var / "sluice.yaml").write_text(json.dumps(settings))
    return var


def command(var: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", "report", *arguments, "--var", str(var)]


def ran(var: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(var, *arguments), cwd=ROOT, capture_output=True, text=True, check=False)


def ended(var: Path, how: signal.Signals) -> int:
    """Begin yesterday's night, and end the process when the first report is written."""
    report = var / "reports" / f".making-{REPORT}" / "mlps.pdf"
    report.unlink(missing_ok=True)
    process = subprocess.Popen(command(var, "nightly", "--date", str(YESTERDAY.day)), cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_until(lambda: process.poll() is not None or report.exists(), 20)
    process.send_signal(how)
    return process.wait(10)


def on_shelf(var: Path) -> list[str]:
    return sorted(path.name for path in (var / "reports").iterdir())


def test_a_night_survives_whatever_ends_its_maker(var: Path, database_urls: DatabaseUrls):
    """Killed, nothing of it has a name, and the next run makes it, once; asked to end, nothing of it stays. What is there then is valid.

    Without the keys that signed it no other night is signed: new ones are not made by the way.
    """
    assert ended(var, signal.SIGKILL) == -signal.SIGKILL
    assert on_shelf(var) == [f".making-{REPORT}"]
    assert ended(var, signal.SIGTERM) == 128 + signal.SIGTERM
    assert on_shelf(var) == []

    made = ran(var, "nightly")
    assert (made.returncode, made.stdout.splitlines()[-1], made.stderr) == (0, f"{var / 'reports' / REPORT}: made", "")
    assert on_shelf(var) == [REPORT]
    assert (
        ran(var, "nightly").stdout
        == f"nothing to make: the log says that each night of UTC from {YESTERDAY.day} to {YESTERDAY.day} was made\n"
    )
    (row,) = json.loads(ran(var, "list", "--output", "json").stdout)
    assert (row["report"], row["verdict"], row["decisions"]) == (REPORT, "valid", 119)
    with psycopg.connect(conninfo(database_urls.log)) as connection:
        assert connection.execute("SELECT count(*) FROM audit.body WHERE kind = 'report.made'").fetchone() == (1,)

    (var / "report-keys").rename(var / "away")
    lost = ran(var, "nightly", "--date", str(YESTERDAY.day), "--again")
    assert (lost.returncode, on_shelf(var), (var / "report-keys").exists()) == (2, [REPORT], False)
    assert "`sluice report keys init` makes new keys" in lost.stderr


def test_a_report_for_a_person_that_is_ended_leaves_nothing(var: Path, tmp_path: Path):
    """Asked to end while it writes, what it wrote about the person goes with it."""
    master = var / "secrets"
    master.mkdir()
    for name in ("pseudonym.key", "subject-keys.key"):
        (master / name).write_bytes(bytes(32))
        (master / name).chmod(0o600)
    out = tmp_path / "out"
    arguments = ("subject", "--tenant", "acme", "--id", "bea", "--out", str(out))
    process = subprocess.Popen(command(var, *arguments), cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_until(lambda: process.poll() is not None or (out.exists() and any(out.iterdir())), 20)
    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 128 + signal.SIGTERM
    assert list(out.iterdir()) == []


@pytest.mark.usefixtures("forbidden")
def test_what_is_asked_for_wrongly_is_told(tmp_path: Path):
    """A day that is not over, a day or zone that is none, no passphrase: an exit code and a line that names it, whatever the database does."""
    urls = dict.fromkeys(("url", "owner_url", "intake_url", "log_url"), UNREACHED)
    (tmp_path / "sluice.yaml").write_text(json.dumps({"database": urls, "models": str(ROOT / "examples" / "models.yaml")}))
    today = str(YESTERDAY.next().day)
    for arguments, says in (
        (["--date", today], "can be reported on from"),
        (["--date", "2026-02-30"], "--date: '2026-02-30' is no day"),
        (["--zone", "Mars/Base"], "--zone: 'Mars/Base' is no time zone"),
        (["--again"], "--again: needs --date"),
        ([], "report.passphrase: not set"),
    ):
        found = CliRunner().invoke(cli, ["report", "nightly", *arguments, "--var", str(tmp_path)])
        assert says in str(found.exception), found.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sluice.yaml"]
