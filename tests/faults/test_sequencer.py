"""The log under faults: its database killed, frozen and full, its process killed, two that think they lead. Nothing handed over is lost or doubled."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from structlog.testing import capture_logs

from app.access import Access
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.sequencing.process import LogProcess
from app.clock import SystemClock
from app.database import SEQUENCER, DatabaseUrls, create_engine
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from app.schema import migrate
from app.setting_sections import DatabaseSettings
from app.signing.keys import KeyFolder
from tests.fixtures.audit_process import AuditProcess
from tests.fixtures.entries import numbered
from tests.fixtures.postgres import rows_of
from tests.fixtures.proc import children_of, frozen
from tests.fixtures.serve import report
from tests.fixtures.waiting import until
from tests.fixtures.whole_log import size_of_whole_log

SETTINGS = DatabaseSettings(timeout_ms=500)
PATIENT = DatabaseSettings(timeout_ms=5000)
KILLS_OF_POSTGRES = 20
KILLS_OF_THE_PROCESS = 10
SOON_S = 30.0  # on two busy cores, a server that recovers included


@dataclass
class Writers:
    """Writers that hand over entries as fast as they can, each again until it is acknowledged, as serve does."""

    intake_url: str
    settings: DatabaseSettings = PATIENT
    acknowledged: list[UUID] = field(default_factory=list)
    failures: int = 0

    @contextlib.asynccontextmanager
    async def writing(self, writers: int = 4) -> AsyncIterator[None]:
        """They write until the end of the block, and finish what they began."""
        engine = create_engine(self.intake_url, self.settings)
        intake = Intake(engine, Metrics(), Gaps(SystemClock()), timeout_ms=self.settings.timeout_ms)
        stop = asyncio.Event()
        tasks = [asyncio.create_task(self._write(intake, stop)) for _ in range(writers)]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)
            await engine.dispose()

    async def _write(self, intake: Intake, stop: asyncio.Event) -> None:
        while not stop.is_set():
            entries = [numbered(random.randrange(10**6)) for _ in range(random.randint(1, 5))]
            while True:
                try:
                    await intake.write(*entries)
                except DependencyDown:
                    self.failures += 1
                    await asyncio.sleep(0.02)
                else:
                    break
            self.acknowledged += [entry.id for entry in entries]

    async def more(self, entries: int) -> None:
        """Wait until that many more are acknowledged."""
        wanted = len(self.acknowledged) + entries
        await until(lambda: len(self.acknowledged) >= wanted, within_s=SOON_S)

    async def check(self, owner_url: str) -> None:
        """That the log is whole and holds what was acknowledged, and all of it once."""
        size = await size_of_whole_log(owner_url)
        ids = [identity for (identity,) in await rows_of(owner_url, "SELECT id FROM audit.leaf")]
        assert len(set(ids)) == len(ids) == size
        assert set(self.acknowledged) - set(ids) == set()
        assert await rows_of(owner_url, "SELECT count(*) FROM audit.intake") == [(0,)]
        assert await rows_of(owner_url, "SELECT max(size) FROM audit.checkpoint") == [(size,)]


@dataclass(frozen=True)
class OwnServer:
    """A server for one test, which writes to disk as in production and is started again at once when it dies."""

    server: EmbeddedPostgres
    folder: Path

    @property
    def urls(self) -> DatabaseUrls:
        return self.server.urls

    @property
    def sequencer_url(self) -> str:
        return Access(self.folder / "secrets").url(SEQUENCER, "sluice")

    def frozen(self) -> contextlib.AbstractContextManager[None]:
        """All of its processes stand still until the end of the block."""
        return frozen(self.server.pid, *children_of(self.server.pid))


@pytest.fixture
async def own_server() -> AsyncIterator[OwnServer]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-fault-"))
    launcher = Launcher(SystemClock(), sleep=lambda _: asyncio.sleep(0.05))
    server = EmbeddedPostgres(folder, launcher, folder / "secrets", settings={"log_min_messages": "panic"})
    await server.start()
    await migrate(server.urls.owner)
    yield OwnServer(server, folder)
    await launcher.stop_all()
    shutil.rmtree(folder)


@contextlib.asynccontextmanager
async def tending(url: str, keys: KeyFolder, settings: DatabaseSettings = PATIENT) -> AsyncIterator[LogProcess]:
    """The log's process, within this one, until everything is sequenced and signed."""
    process = LogProcess(url, keys, SystemClock(), timeout_ms=settings.timeout_ms)
    task = asyncio.create_task(process.run())
    yield process
    process.bell.end()
    await asyncio.wait_for(task, SOON_S)


async def log_size(urls: DatabaseUrls) -> int:
    [(size,)] = await rows_of(urls.log, "SELECT size FROM audit.head")
    return size


async def grown_beyond(urls: DatabaseUrls, size: int) -> None:
    """Wait until the log has more entries than that, and through the times in which nobody can tell."""
    async with asyncio.timeout(SOON_S):
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                if await log_size(urls) > size:
                    return
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(300)  # on a machine that does nothing else half a minute
async def test_no_acknowledged_entry_is_lost_however_often_postgresql_is_killed(own_server: OwnServer, key_folder: KeyFolder):
    """Killed 20 times while entries come and are sequenced: each acknowledged one is in the log once, and every hash fits."""
    writers = Writers(own_server.urls.intake)
    async with tending(own_server.sequencer_url, key_folder):
        async with writers.writing():
            size = 0
            for _ in range(KILLS_OF_POSTGRES):
                await grown_beyond(own_server.urls, size)
                await asyncio.sleep(random.random() / 20)
                size = await log_size(own_server.urls)
                os.kill(own_server.server.pid, random.choice([signal.SIGKILL, signal.SIGQUIT]))
        await grown_beyond(own_server.urls, len(writers.acknowledged) - 1)

    report(f"{len(writers.acknowledged)} acknowledged, {writers.failures} refused meanwhile")
    assert writers.failures > 0
    await writers.check(own_server.urls.owner)


@pytest.mark.slow
@pytest.mark.timeout(300)  # on a machine that does nothing else half a minute
async def test_no_entry_is_lost_however_often_the_process_is_killed(
    database_urls: DatabaseUrls, sequencer_url: str, start_audit: Callable[[str], AuditProcess]
):
    """Ten times whoever leads is killed in the midst of its work, and another goes on where the last commit was."""
    writers = Writers(database_urls.intake)
    running = [start_audit(sequencer_url)]
    async with writers.writing(2):
        for _ in range(KILLS_OF_THE_PROCESS):
            running.append(start_audit(sequencer_url))
            await grown_beyond(database_urls, await log_size(database_urls))
            await asyncio.sleep(random.random() / 20)
            leader = next(audit for audit in running if '"leading"' in audit.log())
            running.remove(leader)
            assert await asyncio.to_thread(leader.stop, signal.SIGKILL) == -signal.SIGKILL
    await grown_beyond(database_urls, len(writers.acknowledged) - 1)
    assert await asyncio.to_thread(running[0].stop) == 0

    await writers.check(database_urls.owner)


async def test_two_that_think_they_lead_make_one_log(database_urls: DatabaseUrls, sequencer_url: str, key_folder: KeyFolder):
    """Whatever became of the leader's lock: numbers stay gapless, entries single, and of each size there is one checkpoint."""
    writers = Writers(database_urls.intake)
    processes = [LogProcess(sequencer_url, key_folder, SystemClock(), timeout_ms=PATIENT.timeout_ms) for _ in range(2)]

    async def tend(process: LogProcess) -> None:
        await process._tend()

    tasks = [asyncio.create_task(tend(process)) for process in processes]
    async with writers.writing():
        await writers.more(300)
    for process in processes:
        process.bell.end()
    await asyncio.wait_for(asyncio.gather(*tasks), SOON_S)

    await writers.check(database_urls.owner)


async def test_a_database_that_hangs_holds_nothing_but_the_log(own_server: OwnServer, key_folder: KeyFolder):
    """The process gives its connections up, and goes on when the server does."""
    writers = Writers(own_server.urls.intake, SETTINGS)
    async with tending(own_server.sequencer_url, key_folder, SETTINGS):
        async with writers.writing(2):
            await writers.more(20)
            with own_server.frozen():
                refused = writers.failures
                await until(lambda: writers.failures >= refused + 4, within_s=SOON_S)
            await writers.more(20)
        await grown_beyond(own_server.urls, len(writers.acknowledged) - 1)

    await writers.check(own_server.urls.owner)


async def test_a_process_ends_in_time_while_its_database_hangs(own_server: OwnServer, start_audit: Callable[[str], AuditProcess]):
    """SIGTERM ends it within three seconds, with what it could not do left in the intake."""
    audit = start_audit(own_server.sequencer_url)
    await asyncio.to_thread(audit.wait_for, "leading")
    loop = asyncio.get_running_loop()
    with own_server.frozen():
        begun = loop.time()
        assert await asyncio.to_thread(audit.stop) == 0
        took_s = loop.time() - begun

    assert took_s < 3.0 + 1.0  # and what two busy cores add


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 16 MiB that the server may write to."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0777", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        folder.rmdir()
        pytest.skip("mounting a small file system takes root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()


async def test_a_full_disk_leaves_entries_in_the_intake(own_server: OwnServer, key_folder: KeyFolder, small_disk: Path):
    """Without room the log stands still, which is said once with the remedy, and the writers go on; with room it goes on by itself."""
    tablespace = small_disk / "leaves"
    tablespace.mkdir(mode=0o777)
    data = own_server.folder / "postgres" / "data"
    shutil.chown(tablespace, data.stat().st_uid)
    await rows_of(own_server.server.admin_url, f"CREATE TABLESPACE small LOCATION '{tablespace}'")
    await rows_of(own_server.server.admin_url, "ALTER TABLE audit.leaf SET TABLESPACE small")
    writers, ballast = Writers(own_server.urls.intake), small_disk / "ballast"
    with capture_logs() as lines:
        async with tending(own_server.sequencer_url, key_folder):
            async with writers.writing():
                await writers.more(50)
                fill(ballast)
                stands_at = await _standing_still(own_server.urls, writers)
                ballast.unlink()
                await grown_beyond(own_server.urls, stands_at)
            await grown_beyond(own_server.urls, len(writers.acknowledged) - 1)

    told = [line for line in lines if line["event"] in ("the log stands still", "the log goes on")]
    assert [line["event"] for line in told] == ["the log stands still", "the log goes on"]
    assert "No space left on device" in told[0]["reason"]
    assert told[0]["advice"].startswith("Make room on the disk of the database")
    await writers.check(own_server.urls.owner)
    await rows_of(own_server.server.admin_url, "ALTER TABLE audit.leaf SET TABLESPACE pg_default")


def fill(file: Path) -> None:
    """Write until the file system is full."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


async def _standing_still(urls: DatabaseUrls, writers: Writers) -> int:
    """The size at which the log stays while a thousand entries are written."""
    size = -1
    while size != (size := await log_size(urls)):
        await writers.more(300)
    return size


TOO_MUCH = (
    """
    CREATE FUNCTION audit.too_much() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF (SELECT count(*) FROM new_rows) > 100 THEN RAISE EXCEPTION 'too much' USING ERRCODE = 'out_of_memory'; END IF;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER too_much AFTER INSERT ON audit.leaf REFERENCING NEW TABLE AS new_rows
      FOR EACH STATEMENT EXECUTE FUNCTION audit.too_much()
    """,
)
"""What a server says that has no locks left for as many shelves as a batch needs."""


async def test_a_batch_that_is_too_much_for_the_server_is_tried_in_parts(
    database_urls: DatabaseUrls, superuser_url: str, sequencer_url: str, key_folder: KeyFolder
):
    """It is no reason to stand still: half of it is tried next, and half of that."""
    for statement in TOO_MUCH:
        await rows_of(superuser_url, statement)
    engine = create_engine(database_urls.intake, PATIENT)
    entries = [numbered(number) for number in range(1000)]
    await Intake(engine, Metrics(), Gaps(SystemClock()), timeout_ms=PATIENT.timeout_ms).write(*entries)
    await engine.dispose()
    async with tending(sequencer_url, key_folder):
        await grown_beyond(database_urls, 1000)

    assert await size_of_whole_log(database_urls.owner) == 1001
