"""`sluice report subject`, `request` and `breach` on a real PostgreSQL."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
import structlog
from typer.testing import CliRunner, Result

from app.audit.reading import checkpoints, proven
from app.audit.reading.caught_up import LogBehind
from app.audit.reading.proven import ProvenEntries
from app.cli.operator import operator
from app.cli.report import app, ending
from app.clock import SystemClock
from app.database import DatabaseUrls
from app.errors import ConfigError
from app.reports.subjects.requests import UnknownRequest
from tests.fixtures.log import GrownLog
from tests.fixtures.subjects import said_in

SLEEP_S = 0.02
PATIENT_S = 20
"""For a machine that runs other tests beside."""
Sluice = Callable[..., Awaitable[Result]]
_ACME = "INSERT INTO registry.tenant_quota (tenant, version, deleted, qps, updated) VALUES ('acme', 1, false, 1, now())"
SOMEBODY = ("--tenant", "acme", "--id", "bea@example.org")


@pytest.fixture
async def sluice(
    database_urls: DatabaseUrls, grown_log: GrownLog, forbidden: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Sluice]:
    """Runs `sluice report …` on a log that somebody sequences and signs; errors are raised, as main() shows them."""
    names = {"registry": "url", "owner": "owner_url", "intake": "intake_url", "log": "log_url"}
    settings = tmp_path / "sluice.yaml"
    urls = {name: getattr(database_urls, role) for role, name in names.items()}
    settings.write_text(json.dumps({"database": urls | {"timeout_ms": PATIENT_S * 1000}, "report": {"zone": "Asia/Shanghai"}}))
    for module in (checkpoints, proven):
        monkeypatch.setattr(module, "FRESH_WITHIN_S", PATIENT_S)
    monkeypatch.setattr(ending, "clean_up_on_sigterm", lambda: None)  # the command runs in a thread, which has no signals
    options = ("--config", str(settings), "--var", str(tmp_path))

    async def run(*arguments: object, told: str | None = None) -> Result:
        result = await asyncio.to_thread(CliRunner().invoke, app, [*map(str, arguments), *options], told)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    handlers, stop = logging.getLogger().handlers[:], asyncio.Event()
    tending = asyncio.create_task(_tend(grown_log, stop))
    yield run
    stop.set()
    await tending
    logging.getLogger().handlers[:] = handlers  # the command's own write to streams that are closed by now
    structlog.reset_defaults()


async def _tend(log: GrownLog, stop: asyncio.Event) -> None:
    """Sequence and sign whatever comes, as the process of the log does."""
    await log.grow(1)
    while not stop.is_set():
        await log.add()
        await log.sign()
        await asyncio.sleep(SLEEP_S)


async def test_a_request_from_open_to_given(sluice: Sluice, tmp_path: Path):
    """Opened, listed with what is left, answered by a report, closed: the id goes to standard output, alone."""
    opened = await sluice("request", "open", *SOMEBODY, "--article", 15)
    request = opened.stdout.strip()
    listed = await sluice("request", "list", "--open")
    given = await sluice("subject", *SOMEBODY, "--request", request, "--out", tmp_path / "out")
    [closed] = json.loads((await sluice("request", "list", "--output", "json")).stdout)
    nobody = await sluice("request", "list", "--tenant", "acme", "--id", "Bea@example.org")

    assert re.search(r"due before [0-9-]{10}T[0-9:]{8}\+08:00\n$", opened.stderr)
    assert listed.stdout.splitlines()[1].split()[:4] == [request, "GDPR", "Art.", "15"]
    assert sorted(given.stdout.split()) == sorted(str(path) for path in (tmp_path / "out").iterdir())
    assert said_in(list((tmp_path / "out").iterdir()))["count"] == 1
    assert re.search(r"\n1 entry; the log has the report as entry [0-9]+\n$", given.stderr)
    assert (closed["id"], closed["status"], closed["days_left"], closed["days_late"]) == (request, "done", None, None)
    assert listed.stdout.splitlines()[1].split()[5] == closed["subject"][:19]
    assert listed.stdout.splitlines()[1].split()[7][19:] == "+08:00"
    assert len(nobody.stdout.splitlines()) == 1
    assert len((await sluice("request", "list", "--open")).stdout.splitlines()) == 1


async def test_a_request_is_refused(sluice: Sluice):
    """With its ground in the list; one that nobody opened is told."""
    request = (await sluice("request", "open", "--operator", "anna", "--article", 17)).stdout.strip()
    refused = await sluice("request", "refuse", request, "--ground", "Art. 12(5)", "--note", "-", told="again")
    listed = await sluice("request", "list")

    assert refused.stdout == f"refused {request} (GDPR Art. 17)\n"
    assert listed.stdout.splitlines()[1].endswith("refused  GDPR Art. 12(5)")
    with pytest.raises(UnknownRequest):
        await sluice("request", "answer", "r")


async def test_a_breach_from_known_to_notified(sluice: Sluice):
    """What happened may come by standard input; hours are left until the authority was told."""
    aware, long_ago = SystemClock().utcnow().isoformat(), (SystemClock().utcnow() - timedelta(hours=100)).isoformat()
    breach = (await sluice("breach", "known", "--aware", aware, "--people", 7, "--what", "-", told="a lost disk")).stdout.strip()
    before = json.loads((await sluice("breach", "list", "--output", "json")).stdout)
    notified = await sluice("breach", "notified", breach, "--whom", "authority")
    after = await sluice("breach", "list")

    assert [(one["id"], one["people"], 71 < one["hours_left"] <= 72) for one in before] == [(breach, 7, True)]
    assert (await sluice("breach", "known", "--aware", aware, "--tenant", "acmee", "--what", "-", told="x")).stderr.startswith(
        "warning: no tenant 'acmee' ever had a quota"
    )
    assert notified.stdout == f"notified authority of {breach}\n"
    assert after.stdout.splitlines()[1].split()[4:7] == ["-", "-", "7"]
    late = (await sluice("breach", "known", "--aware", long_ago, "--what", "-", told="x")).stdout.strip()
    await sluice("breach", "notified", late, "--whom", "authority", "--reason", "-", told="nobody had counted")
    [line] = [one for one in (await sluice("breach", "list")).stdout.splitlines() if one.startswith(late)]
    assert line.split()[4:7] == ["-", "28.0", "unknown"]


async def test_who_is_mistyped_is_warned_of(sluice: Sluice, grown_log: GrownLog, tmp_path: Path):
    """A tenant that never was, a person of whom nothing is held but that somebody asked: told, by the id, and done all the same."""
    async with grown_log.superuser.transaction():
        await grown_log.superuser.execute(_ACME)
    out = ("--out", tmp_path / "out")
    no_tenant = "warning: no tenant 'acmee' ever had a quota here"
    nobody = "warning: nobody is known here as 'bea@example.org' so far; names and ids are taken letter by letter: Bea is not bea"
    nothing = "warning: the log has nothing of 'bea@example.org' but that somebody asked; names and ids are taken letter by letter"

    for tenant, warned in (("acmee", no_tenant), ("acme", nobody)):
        opened = await sluice("request", "open", "--tenant", tenant, "--id", "bea@example.org", "--article", 17)
        assert opened.stderr.startswith(f"{warned}; the request is written down all the same\n")
    for tenant, warned in (("acmee", no_tenant), ("acme", nothing)):
        assert (await sluice("subject", "--tenant", tenant, "--id", "bea@example.org", *out)).stderr.splitlines()[0].startswith(warned)
    assert (await sluice("request", "list", "--tenant", "acme", "--id", "Bea@example.org")).stderr.startswith(
        nobody.replace("bea@", "Bea@", 1)
    )
    assert "warning" not in (await sluice("subject", "--operator", operator(), *out)).stderr


async def test_a_report_that_has_no_number_yet_is_given(sluice: Sluice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Where the log falls behind once the report is recorded, it is named by its id, and the command has done what it was asked."""
    monkeypatch.setattr(ProvenEntries, "number", AsyncMock(side_effect=LogBehind("nobody sequences")))
    given = await sluice("subject", "--operator", operator(), "--out", tmp_path / "out")

    assert given.exit_code == 0
    assert re.search(r"the log has the report as entry [0-9a-f-]{36}, not numbered yet\n$", given.stderr)


async def test_dumps_are_forbidden_where_keys_may_be_opened(sluice: Sluice, forbidden: list[str], tmp_path: Path):
    """The command that may open report keys forbids dumps of its memory first."""
    await sluice("subject", "--operator", operator(), "--out", tmp_path / "out")

    assert forbidden == ["forbid"]


async def test_without_the_secrets_nobody_is_found(sluice: Sluice, tmp_path: Path):
    """A folder without the secrets of serve is an error, not the answer that nothing is held; none is made there."""
    (tmp_path / "secrets" / "pseudonym.key").unlink()

    with pytest.raises(ConfigError, match=r"pseudonym\.key: missing, so nobody is found"):
        await sluice("subject", *SOMEBODY, "--out", tmp_path / "out")
    assert not (tmp_path / "secrets" / "pseudonym.key").exists()
