"""`sluice report subject`, `request` and `breach` on a real PostgreSQL."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from app.audit.reading import checkpoints, proven
from app.cli.operator import operator
from app.cli.report import app, ending
from app.clock import SystemClock
from app.database import DatabaseUrls
from app.errors import BadRequest, ConfigError
from app.reports.subjects.requests import UnknownRequest
from tests.fixtures.log import GrownLog
from tests.fixtures.subjects import said_in

SLEEP_S = 0.02
PATIENT_S = 20
"""For a machine that runs other tests beside."""
Sluice = Callable[..., Awaitable[Result]]
SOMEBODY = ("--tenant", "acme", "--id", "bea@example.org")


@pytest.fixture
async def sluice(
    database_urls: DatabaseUrls, grown_log: GrownLog, forbidden: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Sluice]:
    """Runs `sluice report …` on a log that somebody sequences and signs; errors are raised, as main() shows them."""
    names = {"registry": "url", "owner": "owner_url", "intake": "intake_url", "log": "log_url"}
    settings = tmp_path / "sluice.yaml"
    urls = {name: getattr(database_urls, role) for role, name in names.items()}
    settings.write_text(json.dumps({"database": urls | {"timeout_ms": PATIENT_S * 1000}}))
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
    closed = json.loads((await sluice("request", "list", "--output", "json")).stdout)

    assert "due before" in opened.stderr
    assert listed.stdout.splitlines()[1].split()[:4] == [request, "GDPR", "Art.", "15"]
    assert sorted(given.stdout.split()) == sorted(str(path) for path in (tmp_path / "out").iterdir())
    assert said_in(list((tmp_path / "out").iterdir()))["count"] == 1
    assert [(one["id"], one["status"]) for one in closed] == [(request, "done")]
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
    aware = SystemClock().utcnow().isoformat()
    breach = (await sluice("breach", "known", "--aware", aware, "--people", 7, "--what", "-", told="a lost disk")).stdout.strip()
    before = json.loads((await sluice("breach", "list", "--output", "json")).stdout)
    notified = await sluice("breach", "notified", breach, "--whom", "authority")
    after = await sluice("breach", "list")

    assert [(one["id"], one["people"], 71 < one["hours_left"] <= 72) for one in before] == [(breach, 7, True)]
    assert (await sluice("breach", "known", "--aware", aware, "--tenant", "acmee", "--what", "-", told="x")).stderr.startswith(
        "warning: no tenant 'acmee' ever had a quota"
    )
    assert notified.stdout == f"notified authority of {breach}\n"
    assert after.stdout.splitlines()[1].split()[4:6] == ["-", "7"]


async def test_an_empty_folder_is_no_folder(sluice: Sluice):
    """`--out ''`, as of a variable that is not set, is refused rather than taken for the folder one is in."""
    with pytest.raises(BadRequest, match="--out: is empty"):
        await sluice("subject", *SOMEBODY, "--out", "")


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
