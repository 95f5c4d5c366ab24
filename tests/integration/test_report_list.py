"""`sluice report list` on a real PostgreSQL, and without one."""

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import Result
from typer.testing import CliRunner

from app.audit.records.entry import Entry
from app.audit.records.report import report_made
from app.cli.report import app
from app.clock import SystemClock
from app.database import DatabaseUrls
from tests.fixtures.log import GrownLog
from tests.fixtures.making import DAY
from tests.fixtures.signed_reports import Keys, file_line, night

GONE, HERE, EXCHANGED = (f"2026-11-{day}-asia-shanghai-1" for day in (30, 29, 28))
KEYS = Keys.make()
FILES = night(KEYS)
pytestmark = pytest.mark.usefixtures("forbidden", "logs_as_before")


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """The command's log writes to streams that are closed when it ends."""
    handlers = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = handlers
    structlog.reset_defaults()


@pytest.fixture
def var(tmp_path: Path) -> Path:
    """A folder of serve with the root of the report keys, one night that is as it was signed, and a copy of it for another."""
    for report in (HERE, EXCHANGED):
        folder = tmp_path / "reports" / report
        folder.mkdir(parents=True)
        for name, content in FILES.items():
            (folder / name).write_bytes(content)
    (tmp_path / "report-keys").mkdir(mode=0o700)
    root = tmp_path / "report-keys" / "root.pem"
    root.write_text(KEYS.root.pem)
    root.chmod(0o600)
    return tmp_path


def made(report: str, manifest_sm3: str) -> Entry:
    """The entry that a night was made."""
    files = [("manifest.json", manifest_sm3)]
    now = SystemClock().utcnow()
    return report_made(recorded=now, operator="cli:m", report=report, period=DAY.period, zone=DAY.zone, files=files, count=1)


def urls_of(database: DatabaseUrls) -> dict[str, str]:
    """As the settings name them."""
    names = {"registry": "url", "owner": "owner_url", "intake": "intake_url", "log": "log_url"}
    return {name: getattr(database, role) for role, name in names.items()}


async def listed(var: Path, *options: str, **database: str) -> Result:
    (var / "sluice.yaml").write_text(json.dumps({"database": database}))
    return await asyncio.to_thread(CliRunner().invoke, app, ["list", "--var", str(var), *options], catch_exceptions=False)


def states(done: Result) -> list[tuple[Any, ...]]:
    return [(row["report"], row["verdict"], row["entries"]) for row in json.loads(done.stdout)]


async def test_what_the_log_says_of_the_shelf_is_listed(var: Path, database_urls: DatabaseUrls, grown_log: GrownLog):
    """A night that is gone is missing, one whose manifest is another is tampered with, and nothing else is said."""
    genuine = file_line("manifest.json", FILES["manifest.json"]).sm3
    await grown_log.add(made(GONE, "00" * 32), made(HERE, genuine), made(EXCHANGED, "11" * 32))
    urls = urls_of(database_urls)

    done = await listed(var, "--output", "json", **urls)
    assert states(done) == [(GONE, "missing", None), (HERE, "valid", 7), (EXCHANGED, "tampered", None)]
    assert "manifest is not the one that the log says" in json.loads(done.stdout)[2]["why"]
    assert (done.stderr, done.exit_code) == ("", 4)
    assert (await listed(var, "--most", "1", **urls)).stdout.splitlines()[1].split()[:2] == [GONE, "missing"]


async def test_without_the_log_the_shelf_is_listed_and_that_is_said(var: Path):
    """One line on standard error, whether the database is down, serve does not run, or no role is named that may ask."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    for database in (dict.fromkeys(("url", "owner_url", "intake_url", "log_url"), nowhere), {}, {"url": nowhere}):
        done = await listed(var, "--output", "json", **database)
        assert [state[:2] for state in states(done)] == [(HERE, "valid"), (EXCHANGED, "tampered")]
        (line,) = done.stderr.splitlines()
        assert line.startswith("not compared with the log, so a night that is gone is not told: ")
        assert done.exit_code == 4


async def test_the_exit_status_says_whether_all_nights_are_as_they_were_signed(var: Path, database_urls: DatabaseUrls):
    """0 where all are, 6 where one cannot be checked, 4 where one is not as it was: so that a line in cron can fail."""
    urls = urls_of(database_urls)
    assert (await listed(var, **urls)).exit_code == 4
    shutil.rmtree(var / "reports" / EXCHANGED)
    assert (await listed(var, **urls)).exit_code == 0
    (var / "report-keys" / "root.pem").unlink()
    assert (await listed(var, **urls)).exit_code == 6


async def test_a_pipe_for_a_manifest_keeps_the_list_waiting_for_nothing(var: Path, database_urls: DatabaseUrls, grown_log: GrownLog):
    """The night cannot be checked, and that is said at once, though the log knows its manifest."""
    await grown_log.add(made(HERE, file_line("manifest.json", FILES["manifest.json"]).sm3))
    shutil.rmtree(var / "reports" / EXCHANGED)
    (var / "reports" / HERE / "manifest.json").unlink()
    os.mkfifo(var / "reports" / HERE / "manifest.json")
    async with asyncio.timeout(10):
        done = await listed(var, "--output", "json", **urls_of(database_urls))
    assert (states(done), done.exit_code) == ([(HERE, "unchecked", None)], 6)


async def test_no_success_without_the_log(var: Path):
    """A night that was deleted while the log was away is no shelf in order."""
    shutil.rmtree(var / "reports" / EXCHANGED)
    done = await listed(var, "--output", "json")
    assert (states(done), done.exit_code) == ([(HERE, "valid", 7)], 6)
