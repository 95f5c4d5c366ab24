"""`sluice key` on a real PostgreSQL."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from app.auth.keys import Keys
from app.cli.key import app
from app.clock import SystemClock
from app.database import DatabaseDown, DatabaseUrls, create_engine
from app.errors import BadRequest, NotFound
from app.instants import instant, rfc3339
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.registry import registry_of

Sluice = Callable[..., Result]


@pytest.fixture
def key(database_urls: DatabaseUrls, tmp_path: Path) -> Iterator[Sluice]:
    """Runs `sluice key …` with a settings file for the test's database; errors are raised, as main() shows them."""
    settings = tmp_path / "sluice.yaml"
    urls = {
        "url": database_urls.registry,
        "owner_url": database_urls.owner,
        "intake_url": database_urls.intake,
        "log_url": database_urls.log,
    }
    settings.write_text(json.dumps({"database": urls}))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(settings)])

    handlers = logging.getLogger().handlers[:]
    yield run
    logging.getLogger().handlers[:] = handlers  # the command's own write to streams that are closed by now
    structlog.reset_defaults()


def accepted(urls: DatabaseUrls, bearer: str) -> frozenset[str]:
    async def check() -> frozenset[str]:
        engine = create_engine(urls.registry, DatabaseSettings())
        try:
            keys = Keys(engine, SystemClock(), Metrics(), timeout_ms=TIMEOUT_MS)
            await keys.load()
            return keys.principal(bearer).tenants
        finally:
            await engine.dispose()

    return asyncio.run(check())


def register(urls: DatabaseUrls, folder: Path, tenant: str) -> None:
    async def put() -> None:
        engine = create_engine(urls.registry, DatabaseSettings())
        try:
            await registry_of(engine, folder).put(tenant, {"qps": 5}, if_match=None, operator="test")
        finally:
            await engine.dispose()

    asyncio.run(put())


def test_create_prints_the_key_once_and_alone(key: Sluice, database_urls: DatabaseUrls):
    """Standard output is the key and nothing else, so that a script can take it; the key works."""
    made = key("create", "--role", "gateway", "--tenant", "tenant-prod-a", "--name", "gw1", "--expires", "90d")

    assert made.exit_code == 0
    assert re.fullmatch(r"sluice_[A-Za-z0-9_-]{43}\n", made.stdout)
    assert made.stdout.strip() not in made.stderr
    assert accepted(database_urls, made.stdout.strip()) == {"tenant-prod-a"}


def test_list_shows_states_and_no_key(key: Sluice):
    """The list tells names, states and ends for people and for programs, and never a key."""
    made = key("create", "--role", "operator", "--role", "auditor", "--name", "ops").stdout.strip()
    key("create", "--role", "gateway", "--tenant", "*", "--name", "gw1", "--expires", "12h")
    key("revoke", "ops")
    table, document = key("list").stdout, key("list", "--output", "json").stdout
    expires = json.loads(document)[1]["expires"]

    assert rfc3339(instant(expires, "expires")) == expires
    assert [(row["name"], row["state"], row["roles"]) for row in json.loads(document)] == [
        ("ops", "revoked", ["auditor", "operator"]),
        ("gw1", "in force", ["gateway"]),
    ]
    assert re.search(r"^ops +revoked +auditor,operator", table, re.MULTILINE)
    assert made not in table + document


def test_mistakes_are_said_clearly(key: Sluice, tmp_path: Path):
    """A bad life, an unknown role, an unknown key and a database that is not running are errors with a code, not traces."""
    assert isinstance(key("create", "--role", "gateway", "--tenant", "a", "--name", "x", "--expires", "soon").exception, BadRequest)
    assert isinstance(key("create", "--role", "root", "--name", "x").exception, BadRequest)
    assert isinstance(key("revoke", "nobody").exception, NotFound)
    without_server = CliRunner().invoke(app, ["list", "--var", str(tmp_path / "none")])
    assert isinstance(without_server.exception, DatabaseDown)
    assert (
        without_server.exception.message == f"serve is not running on --var {tmp_path / 'none'}; the embedded database runs only beside it"
    )
    assert f"`sluice serve --var {tmp_path / 'none'}`" in without_server.exception.advice


def test_a_tenant_that_does_not_exist_is_warned_of(key: Sluice, database_urls: DatabaseUrls, tmp_path: Path):
    """A gateway's key may come before its tenant, so it is made and works; a warning says what is missing, and * needs nothing."""
    early = key("create", "--role", "gateway", "--tenant", "tenant/nope", "--tenant", "*", "--name", "early")

    assert accepted(database_urls, early.stdout.strip()) == {"tenant/nope", "*"}
    assert (
        "warning: tenant 'tenant/nope' does not exist; calls for it are refused until PUT /quotas/tenant%2Fnope makes it\n" in early.stderr
    )
    assert early.stderr.count("warning") == 1
    register(database_urls, tmp_path, "tenant-here")
    assert "warning" not in key("create", "--role", "gateway", "--tenant", "tenant-here", "--name", "gw").stderr
