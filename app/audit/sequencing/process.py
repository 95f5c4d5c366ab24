"""The log's own process: it leads or stands by, moves the intake into the log, and signs.

When down: while PostgreSQL is away or has no room, entries wait in the intake and nothing is lost; the process tries again with
growing pauses and smaller batches, and goes on where the head says.
"""

import asyncio
import contextlib
import math
import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import structlog

from app.access import sequencer_url_beside_serve
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.lag import TENDING_LOCK
from app.audit.sequencing.head import check
from app.audit.sequencing.leader import keep_lead, take_lead
from app.audit.sequencing.publisher import Publisher
from app.audit.sequencing.queries import QUERIES
from app.audit.sequencing.root import check_root
from app.audit.sequencing.sequencer import Batch, Sequencer
from app.audit.sequencing.session import Connection, connected, within
from app.backoff import Backoff
from app.clock import Clock, SystemClock
from app.database import SEQUENCER, DatabaseDown, role_of
from app.errors import ConfigError, SluiceError
from app.settings import Settings
from app.signing import sm2
from app.signing.key_files import read_root
from app.signing.keys import KeyFolder, keys_folder
from app.signing.passphrase import passphrase_of
from app.trouble import Trouble

GROUP_MS = 10
"""What arrives within it is one commit: four fifths of the commits less, for a wait that nobody sees."""
IDLE_MS = 100
"""The longest pause between two looks at an intake that is empty: 10 looks a second cost nothing, and readers wait no longer."""
CHECKPOINT_MS = 1000
"""A signed checkpoint a second: a year of them is 10 GB at the most, one for each batch would be half a terabyte."""
ASKED_MS = 50
"""The same for those who ask: whoever asks all the time fills no disk."""
BATCH_TIMEOUTS = 3
"""A batch has several statements, each of which may take the time-out of one."""
RECONNECT_MOST_S = 0.5
"""Between two tries while PostgreSQL is away or refuses: one costs nothing, and nobody waits long for its return."""
END_WITHIN_S = 2.5
"""After a signal: the last batch and the last checkpoint take milliseconds, unless PostgreSQL hangs."""

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(slots=True)
class Bell:
    """What wakes the process from a pause: a stop, or somebody who asks for a checkpoint."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    asked: bool = False
    _rung: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        """Somebody asks for a checkpoint."""
        self.asked = True
        self._rung.set()

    def end(self) -> None:
        """The process is to end in good order."""
        self.stop.set()
        self._rung.set()

    async def pause(self, pause_s: float) -> None:
        """Wait that long, or until it rings."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._rung.wait(), pause_s)
        if not self.stop.is_set():
            self._rung.clear()


class LogProcess:
    """The life of one process of the log on the database at `url`, as sluice_sequencer."""

    def __init__(self, url: str, keys: KeyFolder, clock: Clock, *, timeout_ms: int) -> None:
        self.bell = Bell()
        self._url = url
        self._keys = keys
        self._clock = clock
        self._timeout_ms, self._timeout_s = timeout_ms, timeout_ms / 1000
        self._sequencer = Sequencer(clock)
        self._publisher = Publisher(keys, clock)
        self._standstill, self._unsigned = Trouble(), Trouble()
        self._size = self._published = 0
        self._published_ms = self._looked_ms = -math.inf

    async def run(self) -> None:
        """Lead or stand by until `bell.end()`; then commit what waits, sign, and return."""
        await self._until_done(self._lead)

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        """`work` until it ends well, or fails when the end was asked for; a growing pause after each failure, said once while it lasts."""
        backoff = Backoff(most_s=RECONNECT_MOST_S)
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                await work()
            except SluiceError as error:
                _say(self._standstill, "the log stands still", error)
            else:
                return
            if self.bell.stop.is_set():
                return
            await self.bell.pause(backoff.after((self._clock.monotonic_ms() - began_ms) / 1000))

    async def _lead(self) -> None:
        """One leadership, from its lock to its loss or our end. Raises DatabaseDown, and ConfigError where our keys are not the log's.

        It outlives a standstill: others could not go on from there either, and whoever asks sees that somebody is at it.
        """
        async with connected(self._url, timeout_ms=self._timeout_ms) as session:
            await self._check_root(session)
            if not await take_lead(session, self.bell.stop, timeout_s=self._timeout_s):
                return
            await self._check_root(session)  # again: the log may have begun while we stood by
            if not self._standstill.lasts:
                log.info("leading")
            keeping = asyncio.create_task(keep_lead(session, self.bell.ask, timeout_s=self._timeout_s))
            tending = asyncio.create_task(self._until_done(self._tend))
            try:
                done, _ = await asyncio.wait({keeping, tending}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                keeping.cancel()
                tending.cancel()
                await asyncio.gather(keeping, tending, return_exceptions=True)

    async def _check_root(self, connection: Connection) -> None:
        await within(self._timeout_s, connection, check_root(connection, self._keys.path, self._keys.root))

    async def _tend(self) -> None:
        """Sequence and publish until the end is asked for and nothing waits. Raises DatabaseDown, LogDamaged, ConfigError."""
        async with connected(self._url, timeout_ms=self._timeout_ms) as connection:
            head = await self._bounded(connection, check(connection))
            self._size, self._published = head.size, head.signed
            await self._introduce(connection)
            pause_ms, shown = float(GROUP_MS), False
            while True:
                ending = self.bell.stop.is_set()
                batch = await self._batch(connection)
                if not shown:
                    await self._show_that_it_goes_on(connection)
                    shown = True
                last = ending and not batch.full
                await self._take_new_signer(connection)
                await self._publish_if_due(connection, last=last)
                if last:
                    return
                pause_ms = GROUP_MS if batch.appended else min(IDLE_MS, pause_ms * 2)
                if not batch.full:
                    await self.bell.pause(pause_ms / 1000)

    async def _show_that_it_goes_on(self, connection: Connection) -> None:
        await self._bounded(connection, connection.execute(QUERIES["tend"], {"lock": TENDING_LOCK}))
        _say_over(self._standstill)

    async def _batch(self, connection: Connection) -> Batch:
        cursor = await self._bounded(connection, connection.execute(QUERIES["waits"]))
        if not await cursor.fetchall():
            return Batch(self._size)
        batch = await self._bounded(connection, self._sequencer.sequence(connection, latest=self._publisher.latest))
        self._size = batch.size
        if batch.malformed:
            log.warning("the intake held rows that are no entries; the log keeps them as they were", rows=batch.malformed)
        return batch

    async def _publish_if_due(self, connection: Connection, *, last: bool) -> None:
        """A checkpoint each second in which the log grew, at once where somebody asks, and at the end."""
        age_ms = self._clock.monotonic_ms() - self._published_ms
        asked = self.bell.asked and age_ms >= ASKED_MS
        if not (asked or (self._size > self._published and (last or age_ms >= CHECKPOINT_MS))):
            return
        self._published_ms = self._clock.monotonic_ms()
        self.bell.asked = self.bell.asked and not asked
        try:
            self._published = await self._bounded(connection, self._publisher.publish(connection))
        except (LogDamaged, DatabaseDown):
            raise
        except SluiceError as error:
            _say(self._unsigned, "no checkpoint", error)
        else:
            _say_over(self._unsigned)

    async def _take_new_signer(self, connection: Connection) -> None:
        """Each second, see whether a rotation made a new key, and sign with that; with ours where it cannot be opened."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_ms < CHECKPOINT_MS:
            return
        self._looked_ms = now_ms
        try:
            if await asyncio.to_thread(self._keys.current_changed):
                await asyncio.to_thread(self._keys.open, self._clock.utcnow())
                await self._introduce(connection)
        except ConfigError as error:
            _say(self._unsigned, "the new signer was not taken", error)

    async def _introduce(self, connection: Connection) -> None:
        """Show the log our certificates; an entry for each signer that is new to it stands in the same transaction."""

        async def introduce() -> int:
            async with connection.transaction():
                if entries := await self._publisher.introduce(connection):
                    return (await self._sequencer.sequence(connection, entries, latest=self._publisher.latest)).size
            return self._size

        self._size = await self._bounded(connection, introduce())

    async def _bounded(self, connection: Connection, work: Coroutine[Any, Any, T]) -> T:
        return await within(self._timeout_s * BATCH_TIMEOUTS, connection, work)


def _say(trouble: Trouble, event: str, error: SluiceError) -> None:
    if trouble.is_news(error.message):
        log.error(event, reason=error.message, advice=error.advice)


def _say_over(trouble: Trouble) -> None:
    if reason := trouble.over():
        log.info("the log goes on", after=reason)


async def run_until_stopped(settings: Settings, var: Path) -> None:
    """Keep the log of the database that `settings` and `var` name until SIGTERM or SIGINT. Raises ConfigError and DatabaseDown at the start."""
    clock = SystemClock()
    sm2.self_test()
    url = sequencer_url_beside_serve(settings, var)
    folder = keys_folder(settings, var)
    async with connected(url, timeout_ms=settings.database.timeout_ms) as connection:
        await within(settings.database.timeout_ms / 1000, connection, _check_database(connection, folder))
    keys = KeyFolder(folder, passphrase_of(settings, var))
    keys.open_or_make(clock.utcnow())
    process = LogProcess(url, keys, clock, timeout_ms=settings.database.timeout_ms)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, process.bell.end)
    log.info("started", root=keys.root.fingerprint.hex(), signer=keys.certificate.fingerprint.hex())
    running = asyncio.create_task(process.run())
    await asyncio.wait({running, asyncio.create_task(process.bell.stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    try:
        await asyncio.wait_for(running, END_WITHIN_S)
    except TimeoutError:
        log.warning("ended without the last checkpoint", reason="PostgreSQL does not answer")
    log.info("stopped")


async def _check_database(connection: Connection, folder: Path) -> None:
    """That we may add to the log but not rewrite it, and that it has the root of our keys, or none while we have none. Raises ConfigError."""
    role = await role_of(connection)
    if role.superuser or role.owns_log:
        raise ConfigError(
            f"database.sequencer_url: the role {role.name} could rewrite the log",
            hint=f"Give this process the role {SEQUENCER} and no other.",
            field="database.sequencer_url",
        )
    await check_root(connection, folder, read_root(folder))
