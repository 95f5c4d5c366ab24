"""The embedded server: private, without root's rights, and the same again at the next start."""

import os
import shutil
import stat
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from app import placement
from app.access import Access
from app.clock import SystemClock
from app.database import conninfo
from app.errors import ConfigError
from app.folders import FolderInUse
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from tests.fixtures.postgres import rows_of, scratch_folder


@pytest.fixture
async def launcher():
    launcher = Launcher(SystemClock())
    yield launcher
    await launcher.stop_all()


@pytest.fixture
def var():
    """A folder that does not exist yet, in one short enough for sockets."""
    with scratch_folder() as folder:
        yield folder / "var"


def embedded(var: Path, launcher: Launcher) -> EmbeddedPostgres:
    return EmbeddedPostgres(var, launcher, var / "secrets", settings={"fsync": "off"})


async def test_a_second_start_finds_everything(var, launcher):
    """Data and passwords outlive a stop; nothing is made a second time."""
    first = embedded(var, launcher)
    await first.start()
    urls = first.urls
    async with await psycopg.AsyncConnection.connect(conninfo(urls.owner)) as connection:
        await connection.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 42 AS answer")
    await first.stop()
    with capture_logs() as events:
        again = embedded(var, launcher)
        await again.start()

    assert await rows_of(again.urls.owner, "SELECT answer FROM s.t") == [(42,)]
    assert again.urls == urls
    assert [event["child"] for event in events if event["event"] == "child_started"] == ["postgres"]


async def test_the_same_folder_twice_is_refused(var, launcher):
    """A second server on a folder in use is refused, naming the process that holds it; the first goes on."""
    first = embedded(var, launcher)
    await first.start()

    with pytest.raises(FolderInUse, match=rf"{var} is in use by process {os.getpid()}$"):
        await embedded(var, launcher).start()
    assert await rows_of(first.admin_url, "SELECT 1") == [(1,)]


async def test_two_folders_side_by_side(var, launcher):
    """Two servers with folders of their own know nothing of each other."""
    one, other = embedded(var, launcher), embedded(var.with_name("other"), launcher)
    await one.start()
    await other.start()

    assert one.pid != other.pid
    assert await rows_of(one.admin_url, "SHOW data_directory") == [(f"{var}/postgres/data",)]
    assert await rows_of(other.admin_url, "SHOW data_directory") == [(f"{var.with_name('other')}/postgres/data",)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops rights")
async def test_a_closed_parent_stays_closed(var, launcher, monkeypatch):
    """Below a folder that only root enters, as root's home is, the server works all the same: its data lie elsewhere."""
    monkeypatch.setattr(placement, "SHARED_HOME", var.parent / "shared")
    closed = var.parent / "closed"
    closed.mkdir(mode=0o700)
    server = embedded(closed / "var", launcher)
    await server.start()

    [(data,)] = await rows_of(server.admin_url, "SHOW data_directory")
    assert Path(data).parents[1] == var.parent / "shared"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


async def test_a_start_cut_short_is_begun_anew(var, launcher):
    """A half-made data folder of a start that was killed is no obstacle and not used."""
    half_made = var / "postgres" / "data.new"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18")
    server = embedded(var, launcher)
    await server.start()

    assert await rows_of(server.admin_url, "SELECT 1") == [(1,)]
    assert not half_made.exists()


async def test_lost_passwords_are_an_error_with_a_remedy(var, launcher):
    """A database whose passwords were removed is not silently made anew."""
    server = embedded(var, launcher)
    await server.start()
    await server.stop()
    shutil.rmtree(var / "secrets")

    with pytest.raises(ConfigError, match=r"database\.json: missing, so nobody knows the passwords"):
        await embedded(var, launcher).start()
    assert (var / "postgres" / "data" / "PG_VERSION").exists()


async def test_odd_and_long_folders_work(var, launcher):
    """A folder with spaces, and one too long for a socket, serve like any other; a short one made for the socket goes in the end."""
    odd = var.with_name("a folder' with = odd" + "x" * 80)
    server = embedded(odd, launcher)
    await server.start()

    assert await rows_of(server.urls.registry, "SELECT current_user::text") == [("sluice_registry",)]
    [(sockets,)] = await rows_of(server.admin_url, "SHOW unix_socket_directories")
    assert not Path(sockets).is_relative_to(odd)
    await launcher.stop_all()
    assert not Path(sockets).exists()  # noqa: ASYNC240 - one look


async def test_a_folder_that_cannot_be_used_is_named(var, launcher):
    """An error of the file system becomes one line with the path and what to do."""
    var.parent.joinpath("file").touch()

    with pytest.raises(ConfigError, match=r"/file/var.*: Not a directory") as refused:
        await embedded(var.parent / "file" / "var", launcher).start()
    assert "--var DIR" in refused.value.advice


def test_urls_before_the_first_start_are_an_error_with_a_remedy(var):
    """Another command that looks for a database which was never started is told so."""
    with pytest.raises(ConfigError, match=r"database\.json: No such file") as refused:
        Access(var / "secrets").urls()
    assert "`sluice serve`" in refused.value.advice


async def test_it_cannot_be_reached_over_the_network(postgres_server):
    """There is no TCP port; the socket lies in a folder that only the server's user enters."""
    sockets = postgres_server.var / "postgres" / "run"

    assert await rows_of(postgres_server.admin_url, "SHOW listen_addresses") == [("",)]
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE((sockets / ".s.PGSQL.5432").stat().st_mode) == 0o700


def test_only_its_own_folder_is_opened(postgres_server):
    """Var may be passed through, its secrets and the data may not."""
    modes = {
        name: stat.S_IMODE((postgres_server.var / name).stat().st_mode)
        for name in (".", "secrets", "secrets/database.json", "postgres/data")
    }

    assert modes == {".": 0o711, "secrets": 0o700, "secrets/database.json": 0o600, "postgres/data": 0o700}


async def test_everybody_needs_a_password(postgres_server):
    """Every line of its access rules asks for SCRAM, and every password is stored as a SCRAM verifier."""
    assert await rows_of(postgres_server.admin_url, "SELECT DISTINCT auth_method FROM pg_hba_file_rules") == [("scram-sha-256",)]
    assert (
        await rows_of(
            postgres_server.admin_url, "SELECT rolname::text FROM pg_authid WHERE rolcanlogin AND rolpassword NOT LIKE 'SCRAM-SHA-256$%'"
        )
        == []
    )
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await rows_of(postgres_server.admin_url.replace("postgres:", "postgres:x"), "SELECT 1")


async def test_pages_have_checksums(postgres_server):
    """A flipped bit on the disk is noticed by the database itself."""
    assert await rows_of(postgres_server.admin_url, "SHOW data_checksums") == [("on",)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")
def test_it_does_not_run_as_root(postgres_server):
    """The server has an ordinary user's rights, in every respect that the kernel knows."""
    status = Path(f"/proc/{postgres_server.pid}/status").read_text()
    ids = {line.split()[0]: set(line.split()[1:]) for line in status.splitlines() if line.startswith(("Uid", "Gid", "Groups"))}

    assert not [name for name, values in ids.items() if "0" in values]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows a process's environment")
def test_it_sees_nothing_of_our_environment(postgres_server):
    """The server's environment holds a path and a locale, and none of our secrets."""
    names = {entry.partition("=")[0] for entry in Path(f"/proc/{postgres_server.pid}/environ").read_text().split("\0") if entry}

    assert names <= {"PATH", "LC_ALL", "PGDATA", "PG_GRANDPARENT_PID"}


async def test_a_transaction_may_lock_many_shelves(postgres_server):
    """A search of a log with two thousand shelves, of a table and its indexes each, finds room for its locks."""
    ((locked,),) = await rows_of(
        postgres_server.admin_url, "SELECT count(*) FROM (SELECT pg_advisory_xact_lock(n) FROM generate_series(1, 2000 * 8) AS n) AS locks"
    )

    assert locked == 16_000
