"""From a policy folder to the policy in force: watch, check, build, offer to OPA, learn what OPA made of it.

When down: a folder or bundle that is refused changes nothing; the last good one stays in force and is what OPA is offered.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from app.errors import PolicyRefused, SluiceError
from app.observability.metrics import Metrics
from app.policy.bundle import Compiled
from app.policy.check import Seen, compile_policy
from app.policy.folder import PARTS, read_files
from app.policy.last_good import LastGood
from app.policy.modes import NO_MODES, Modes
from app.policy.policy import Policy
from app.policy.record import PolicyRecord
from app.watching import changes

BUNDLE_NAME = "sluice"
"""Name of our bundle in OPA's configuration and in its status posts."""

CHECK_AGAIN_S = 5.0
"""A check that could not be done is done again so soon: a full disk or a busy machine passes without a change of the folder."""

VERDICT_S = 1.0
"""How long a bundle that was sent once waits for OPA's verdict before it is sent again."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LoadState:
    """What /readyz tells: revision in force, the one on offer, and why the newest folder or bundle was refused."""

    in_force: str | None
    offered: str | None
    problem: str | None


class Loader:
    """Keeps the bundle that OPA is offered, and tells the policy what OPA runs."""

    def __init__(
        self,
        folder: Path,
        binary: Path,
        policy: Policy,
        record: PolicyRecord,
        metrics: Metrics,
        *,
        modes: Modes = NO_MODES,
        last_good: LastGood | None = None,
    ) -> None:
        self._folder = folder
        self._binary = binary
        self._policy = policy
        self._record = record
        self._metrics = metrics
        self._modes = modes
        self._last_good = last_good
        self._offered: Compiled | None = None
        self._good: Compiled | None = None
        self._sent: str | None = None
        self._refused: dict[str, str] = {}
        self._seen = Seen()
        self._problem: str | None = None
        self._changed = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> LoadState:
        """Where loading stands."""
        return LoadState(self._policy.revision, self._offered.revision if self._offered else None, self._problem)

    async def begin(self) -> None:
        """Offer the folder's bundle; where the folder is refused, the last policy that ran here, so that a restart closes nothing."""
        await self._reload_if_changed()
        if self._offered is None and self._last_good is not None:
            with contextlib.suppress(SluiceError):
                self._offer(await compile_policy(self._last_good.folder, self._binary, self._last_good.known(self._modes)))

    async def reload(self) -> Compiled:
        """Check the folder and offer its bundle. Raises PolicyRefused, or what kept it from a verdict; then nothing changes but `state`."""
        async with self._reloading:
            return await self._reload()

    async def watch(self) -> None:
        """Reload on every change of the folder, for ever."""
        async for _ in changes([self._folder / part for part in PARTS]):
            while not await self._reload_if_changed():  # noqa: ASYNC110 - room on a disk has no event
                await asyncio.sleep(CHECK_AGAIN_S)

    async def poll(self, have: str | None, wait_s: float) -> Compiled | None:
        """What OPA should run, once it differs from what OPA says it has; None after `wait_s`, or when closing.

        `have` is the revision of OPA's If-None-Match: naming the one on offer, it confirms that OPA runs it.
        """
        if have is not None and self._offered is not None and have == self._offered.revision:
            self._confirm(self._offered)
        elif self._offered is not None and self._sent == self._offered.revision:
            await self._wait_for_change(VERDICT_S)  # it was sent and is not in force: the verdict is on its way
        if (self._offered is None or have == self._offered.revision) and not self._closing:
            await self._wait_for_change(wait_s)
        if self._closing or self._offered is None or have == self._offered.revision:
            return None
        self._sent = self._offered.revision
        return self._offered

    def status(self, document: Any) -> None:
        """Take in a status post of OPA: it confirms what runs, or says why what was sent does not."""
        bundle = (document.get("bundles") or {}).get(BUNDLE_NAME) or {}
        offered = self._offered
        if offered is None:
            return
        if bundle.get("active_revision") == offered.revision:
            self._confirm(offered)
        elif bundle.get("code") == "bundle_error" and self._sent == offered.revision:
            texts = [str(error.get("message", error)) for error in bundle.get("errors") or ()]
            problem = "; ".join([str(bundle.get("message", "refused")), *texts])
            self._refused[offered.revision] = problem
            self._record.refused(problem, offered.revision, self._policy.revision)
            self._refuse(offered.revision, problem)
            self._offered = self._good
            self._wake()

    async def close(self) -> None:
        """Answer open polls, so that OPA and the server can end at once."""
        self._closing = True
        self._wake()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reload_if_changed(self) -> bool:
        """Reload where the folder is not as it was at the last reload. False where that gave no verdict, so it must be done again."""
        async with self._reloading:
            try:
                if await self._has_changed():
                    await self._reload()
            except PolicyRefused:  # reload has noted and logged it, as it has the rest
                return True
            except SluiceError:
                return False
            return True

    async def _has_changed(self) -> bool:
        try:
            return await asyncio.to_thread(read_files, self._folder) != self._seen.files
        except PolicyRefused as refusal:
            return refusal.message != self._problem

    async def _reload(self) -> Compiled:
        try:
            compiled = await compile_policy(self._folder, self._binary, self._modes, self._seen)
            if compiled.revision in self._refused:
                raise PolicyRefused(self._refused[compiled.revision])
        except SluiceError as refusal:
            if isinstance(refusal, PolicyRefused):
                self._record.refused(refusal.message, None, self._policy.revision)
            else:
                self._seen.files = None
            self._refuse(None, refusal.message)
            raise
        self._problem = None
        self._offer(compiled)
        return compiled

    def _offer(self, compiled: Compiled) -> None:
        self._policy.offer(compiled)
        if self._offered is None or self._offered.revision != compiled.revision:
            self._offered = compiled
            self._sent = None
            log.info("policy_offered", revision=compiled.revision)
            self._wake()

    def _confirm(self, compiled: Compiled) -> None:
        if self._good is None or self._good.revision != compiled.revision:
            self._record.activated(compiled.revision, self._good.revision if self._good else None)
            self._good = compiled
            self._metrics.policy_loads.labels("activated").inc()
            if self._last_good is not None:
                self._last_good.save(compiled)
            task = asyncio.create_task(self._policy.activate(compiled))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _refuse(self, revision: str | None, problem: str) -> None:
        self._problem = problem
        self._metrics.policy_loads.labels("refused").inc()
        known = {"revision": revision, "in_force": self._policy.revision}
        log.error("policy_refused", problem=problem, **{name: value for name, value in known.items() if value is not None})

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_for_change(self, wait_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), wait_s)
