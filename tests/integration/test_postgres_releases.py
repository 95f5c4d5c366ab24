"""The schema on the older releases that Sluice works with: every statement runs, and the same changes are refused."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app import postgres
from app.access import DATABASE, Access
from app.clock import SystemClock
from app.database import SEQUENCER, conninfo
from app.placement import closed_to, ordinary_user
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from app.schema import migrate
from tests.fixtures.append_only import TARGETS, assert_refused, contents, fill
from tests.fixtures.postgres import FAST_AND_SILENT, Server, scratch_folder

RELEASES = {15: Path("/usr/lib/postgresql/15/bin"), 16: postgres.wheel_programs().parents[1] / "pginstall" / "bin"}
INITDB_OPTIONS = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions")  # the provider `builtin` came with 17


@pytest.fixture(scope="module", params=RELEASES)
def older_server(request: pytest.FixtureRequest) -> Iterator[tuple[int, Server]]:
    """A server of an older release, migrated, and its release."""
    release, programs = request.param, RELEASES[request.param]
    if not (programs / "postgres").exists():
        pytest.skip(f"no PostgreSQL {release} at {programs}")
    with scratch_folder() as folder, pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        if closed := closed_to(ordinary_user(folder), programs):
            pytest.skip(f"{closed} is closed to the user that a server runs as")
        patch.setattr(postgres, "_programs", lambda _: programs)
        patch.setattr(postgres, "INITDB_OPTIONS", INITDB_OPTIONS)
        launcher = Launcher(SystemClock())
        server = EmbeddedPostgres(folder, launcher, folder / "secrets", settings=FAST_AND_SILENT)
        try:
            runner.run(server.start())
            runner.run(migrate(server.urls.owner))
            runner.run(fill(Access(folder / "secrets").url(SEQUENCER, DATABASE)))
            yield release, Server(server.urls, server.admin_url, folder, server.pid)
        finally:
            runner.run(launcher.stop_all())


@pytest.mark.parametrize("whose", ["owner", "replica"])
async def test_older_releases_refuse_the_same(older_server: tuple[int, Server], whose: str):
    """On PostgreSQL 15 and 16 the schema is made, shelves too, and rows that stand are refused any change, under replication as well."""
    release, server = older_server
    before = await contents(server.urls.owner)
    url = server.urls.owner if whose == "owner" else server.admin_url
    async with await psycopg.AsyncConnection.connect(conninfo(url), autocommit=True) as connection:
        if whose == "replica":
            await connection.execute("SET session_replication_role = replica")
        for target in TARGETS:
            for statement in target.changes():
                await assert_refused(connection, statement, "only grows|moves forward")

        assert connection.info.server_version // 10_000 == release
    assert await contents(server.urls.owner) == before
