"""Children of serve: started from the main thread, logged line by line, restarted when they die, never left behind.

On Linux the kernel signals each child when serve ends, however it ends (PR_SET_PDEATHSIG); elsewhere only an orderly stop ends them.
When down: a child that dies is started again with growing pauses; what its absence means is said by the room that talks to it.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import pwd
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import structlog

from app.backoff import Backoff
from app.child_output import LEVELS, Lines, event_of, write
from app.clock import Clock
from app.errors import DependencyDown

PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>
ORPHANED = 70  # exit code of a child whose parent died between fork and prctl
TAIL_LINES = 20  # what the log of an exit repeats
DRAIN_TIMEOUT_S = 0.5  # how long the output of an ended child may still come
STOP_TIMEOUT_S = 5.0  # one child's share of the time below
STOP_LEAST_S = 0.5  # ten times what PostgreSQL needs for an orderly end
STOP_ALL_TIMEOUT_S = 8.0  # serve must be gone 10 s after SIGTERM
READY_TIMEOUT_S = 30.0  # a first start on a slow disk recovers or copies files first

Sleep = Callable[[float], Awaitable[None]]

log = structlog.get_logger()
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ChildFailed(DependencyDown):
    """A child of serve could not be started, or ended before it was ready."""

    code = "child_failed"
    hint = "The message has its last lines; `sluice doctor` checks what children need."


Argv = Sequence[str | Path]


class Options(TypedDict, total=False):
    """How a child runs, beside its argument vector. What is absent is inherited or the default named here."""

    env: Mapping[str, str]
    cwd: Path
    stop_signal: signal.Signals
    """Asks it to end in good order; SIGTERM."""
    death_signal: signal.Signals
    """What the kernel sends it when serve is gone; SIGKILL."""
    user: pwd.struct_passwd | None
    """Whose rights it gets; ours. Only root can give another's."""
    pass_fds: Sequence[int]
    level: Literal["debug", "info"]
    """At which level its lines are logged that do not tell their own; info."""
    ready: "Callable[[Child], Awaitable[None]]"
    """Returns once the child does its work, and keeps trying until then."""


class Child:
    """One running program. Its output, both streams, goes to our log as one event a line."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], options: Options) -> None:
        self.name = name
        self.pid = popen.pid
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._popen = popen
        self._stop_signal = options.get("stop_signal", signal.SIGTERM)
        self._level = LEVELS[options.get("level", "info").upper()]
        self._most = logging.CRITICAL
        loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = loop.create_future()
        self._drained: asyncio.Future[None] = loop.create_future()
        self._output: asyncio.ReadTransport | None = None
        # A thread that waits works under every event loop and Python; forking stays with the main thread.
        threading.Thread(target=self._await_exit, args=(loop,), name=f"wait-{name}", daemon=True).start()

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._exit.result() if self._exit.done() else None

    async def wait(self) -> int:
        """The exit code, once it has ended. Cancelling the wait leaves the child alone."""
        code = await asyncio.shield(self._exit)
        # A grandchild may hold the pipe open; the last lines of the child itself are there by now.
        await asyncio.wait([self._drained], timeout=DRAIN_TIMEOUT_S)
        if self._output:
            self._output.close()
        return code

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to end, and end its whole process group where it has not within `timeout_s`.

        What it says meanwhile, such as that its connections break, is as it should be and no news to anybody.
        """
        if self.returncode is not None:
            return await self.wait()
        self._most = logging.DEBUG
        self._popen.send_signal(self._stop_signal)
        try:
            code = await asyncio.wait_for(self.wait(), timeout_s)
        except TimeoutError:
            log.warning("child_killed", child=self.name, pid=self.pid, after_s=timeout_s)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            return await self.wait()
        if code not in (0, -self._stop_signal):
            log.warning("child_ended_badly", child=self.name, code=code, tail=list(self.tail))
        return code

    async def read_output(self) -> None:
        """Connect the child's output to the log; it is read from then on, whoever waits for what."""
        lines = Lines(self._say, self._drained)
        self._output, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: lines, self._popen.stdout)

    def _say(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace").rstrip()
        if line:
            self.tail.append(line)
            write(self.name, event_of(line, self._level), self._most)

    def _await_exit(self, loop: asyncio.AbstractEventLoop) -> None:
        code = self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop was closed first: nobody is left to be told
            loop.call_soon_threadsafe(self._exit.set_result, code)


class Kept:
    """A child that is started again whenever it dies, until it is stopped."""

    def __init__(self, child: Child, again: Callable[[], Awaitable[Child]], clock: Clock, sleep: Sleep) -> None:
        self.child = child
        self.restarts = 0
        self._again = again
        self._clock = clock
        self._sleep = sleep
        self._watch = asyncio.create_task(self._restart_for_ever(), name=f"keep-{child.name}")

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """End the restarts, then the child."""
        self._watch.cancel()
        await asyncio.wait([self._watch])
        return await self.child.stop(timeout_s)

    async def _restart_for_ever(self) -> None:
        backoff = Backoff()
        while True:
            began_ms = self._clock.monotonic_ms()
            code = await self.child.wait()
            pause_s = backoff.after((self._clock.monotonic_ms() - began_ms) / 1000)
            say = log.error if code else log.warning  # somebody asked it to end, which is no failure of its own
            say("child_died", child=self.child.name, code=code, restart_in_s=pause_s, tail=list(self.child.tail))
            await self._sleep(pause_s)
            try:
                self.child = await self._again()
                self.restarts += 1
            except ChildFailed as failure:
                log.error("child_not_restarted", child=self.child.name, reason=failure.message)  # noqa: TRY400 - the reason is all there is


class Launcher:
    """Starts every child of this process, from the main thread, and stops them in reverse order."""

    def __init__(self, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._held: list[Child | Kept] = []
        self._afterwards: list[Callable[[], None]] = []

    async def start(self, name: str, argv: Argv, **options: Unpack[Options]) -> Child:
        """Start a child once. Raises ChildFailed where it cannot start or ends before `ready` returns."""
        child = await _spawn(name, argv, options)
        self._held.append(child)
        if ready := options.get("ready"):
            await _until_ready(child, ready)
        return child

    async def keep(self, name: str, argv: Argv, **options: Unpack[Options]) -> Kept:
        """Start a child, and again whenever it dies. Raises ChildFailed where the first start fails."""
        child = await self.start(name, argv, **options)
        kept = Kept(child, lambda: _spawn(name, argv, options), self._clock, self._sleep)
        self._held[self._held.index(child)] = kept
        return kept

    async def run(self, name: str, argv: Argv, *, stop_s: float = STOP_TIMEOUT_S, **options: Unpack[Options]) -> None:
        """Run a child to its end; where the wait is cancelled it is stopped within `stop_s`. Raises ChildFailed where it does not end well."""
        child = await self.start(name, argv, **options)
        try:
            code = await child.wait()
        finally:
            await child.stop(stop_s)
            if child in self._held:  # not where all are being stopped
                self._held.remove(child)
        if code:
            raise ChildFailed(f"{name} ended with code {code}: {' | '.join(child.tail) or 'it said nothing'}")

    async def stop_all(self, timeout_s: float = STOP_ALL_TIMEOUT_S) -> None:
        """Stop all children, the newest first, in about `timeout_s` altogether: who ignores it leaves the others little time."""
        deadline_ms = self._clock.monotonic_ms() + timeout_s * 1000
        while self._held:
            left_s = (deadline_ms - self._clock.monotonic_ms()) / 1000
            await self._held.pop().stop(min(STOP_TIMEOUT_S, max(STOP_LEAST_S, left_s)))
        while self._afterwards:
            self._afterwards.pop()()

    def afterwards(self, clear: Callable[[], None]) -> None:
        """Call `clear` when all children have been stopped: what they worked with is nobody's then."""
        self._afterwards.append(clear)


async def _spawn(name: str, argv: Argv, options: Options) -> Child:
    if threading.current_thread() is not threading.main_thread():
        # The kernel counts the end of the thread that forked as the parent's end.
        raise RuntimeError("children start from the main thread only")
    user = options.get("user")
    try:
        popen = subprocess.Popen(  # noqa: ASYNC220 - the fork must happen in this thread
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=options.get("env"),
            cwd=options.get("cwd"),
            pass_fds=options.get("pass_fds", ()),
            start_new_session=True,  # Ctrl-C reaches serve alone, which then stops them in order
            preexec_fn=_end_with_parent(os.getpid(), options.get("death_signal", signal.SIGKILL)),  # noqa: PLW1509
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=os.getgrouplist(user.pw_name, user.pw_gid) if user else None,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ChildFailed(f"{name} did not start: {error}") from None
    child = Child(name, popen, options)
    try:
        await child.read_output()
    except BaseException:
        popen.kill()
        raise
    log.info("child_started", child=name, pid=child.pid)
    return child


def _end_with_parent(parent: int, death_signal: signal.Signals) -> Callable[[], None]:
    """What a child does between fork (rights already dropped, which would clear the wish) and exec."""

    def in_child() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died before the wish was made
            os._exit(ORPHANED)

    return in_child


async def _until_ready(child: Child, ready: Callable[[Child], Awaitable[None]]) -> None:
    trying = asyncio.ensure_future(ready(child))
    ended = asyncio.ensure_future(child.wait())
    try:
        await asyncio.wait({trying, ended}, timeout=READY_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if trying.done():
            return trying.result()
    finally:
        trying.cancel()
        ended.cancel()
    code = child.returncode
    await child.stop()
    why = f"was not ready within {READY_TIMEOUT_S:g} s" if code is None else f"ended with code {code}"
    raise ChildFailed(f"{child.name} {why}: {' | '.join(child.tail) or 'it said nothing'}")
