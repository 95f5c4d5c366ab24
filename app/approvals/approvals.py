"""Who allowed whom to use a sensitive model, for what and until when: in memory for decisions, in PostgreSQL for good.

Each step is one transaction with its log entry and the word to other replicas; this process's memory follows before the caller
hears of it, so the next decision knows. A step that is already made is refused with 409, but for a second revocation, which
changes nothing and answers as the first: whoever makes sure that something is closed should hear that it is. One that is being
revoked opens nothing here from before the revocation's own time on, so that no access of this process is later than it.

When down: no step is possible (DatabaseDown), and those known go on for STALE_AFTER_MS, since one may be revoked elsewhere meanwhile;
after that all count as unknown, which opens nothing, until the table is read again. An approval that is not in memory counts as none.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.approvals import store
from app.approvals.approval import OPEN, RANKS, Approval, Step
from app.approvals.store import Filters
from app.approvals.wish import Wish
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import hand_over
from app.audit.people.people import People
from app.audit.people.subject_keys import Keyring, SubjectKey
from app.audit.records.approval import ApprovalFacts, approval_step
from app.audit.records.entry import Entry, Sealed
from app.auth.keys import Principal
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.errors import ConfigError, Conflict
from app.follower import Follower
from app.observability.metrics import Metrics
from app.transaction import Transactions

MOST_OPEN = 10_000
"""Of one tenant, asked for or in force: some 1 KB each in every replica."""
MOST_ENDED = 10_000
"""Refused and revoked ones that are still told as such; older ones count as unknown, which opens nothing either."""
TOLD_AFTER_END = timedelta(days=1)
"""How long an expired one is told as expired."""
MOST_KNOWN = 50_000
"""Beyond so many, those that expired are let go at once: what was asked for a moment each must not fill the memory for a day."""
STALE_AFTER_MS = 15_000
"""Three rounds of the follower without a complete reading, each of which would have told of a revocation elsewhere."""
_LEAST_STALE = 64

Answered = Literal["approved", "refused"]
Models = Callable[[str], ModelSpec | None]


class Known:
    """Approvals that may still matter, by id. From memory, never waiting."""

    def __init__(self, engine: AsyncEngine, clock: Clock, metrics: Metrics, people: People, *, timeout_ms: int) -> None:
        self._clock = clock
        self._people = people
        self._known: dict[UUID, Approval] = {}
        self._ended: deque[UUID] = deque()
        self._expiries: list[tuple[datetime, UUID]] = []
        self._closing: Counter[UUID] = Counter()
        self._follower = Follower(engine, store.FEED, self._install, clock, metrics, timeout_ms=timeout_ms)

    def find(self, tenant: str, approval_id: str | None) -> Approval | None:
        """The approval of that tenant that a request names; None where it names none, or none that is known here."""
        if approval_id is None:
            return None
        try:
            found = self._known.get(UUID(approval_id))
        except ValueError:
            return None
        return found if found is not None and found.tenant == tenant else None

    def facts(self, tenant: str, approval_id: str | None, subject_id: str | None) -> dict[str, Any] | None:
        """What rules read of it about a request of that subject (Approval.facts). None where it may be revoked unheard, too."""
        found = self.find(tenant, approval_id)
        if found is None or self._follower.age_ms > STALE_AFTER_MS:
            return None
        if found.state == "approved" and found.id in self._closing:
            found = replace(found, state="revoked")
        subject = self._people.pseudonyms.subject(tenant, subject_id) if subject_id and found.subject else None
        return found.facts(self._clock.utcnow(), subject)

    async def load(self) -> None:
        """Read all that matter once, before the first decision. Raises DatabaseDown."""
        await self._follower.load()

    async def follow(self) -> None:
        """Keep up with other replicas, for ever: within milliseconds, or 5 s where a notification is lost."""
        await self._follower.follow()

    @contextmanager
    def _closed(self, identity: UUID) -> Iterator[None]:
        """Meanwhile that approval opens nothing here, as if it were revoked."""
        self._closing[identity] += 1
        try:
            yield
        finally:
            self._closing[identity] -= 1
            if not self._closing[identity]:
                del self._closing[identity]

    def _install(self, rows: Iterable[Row[Any]]) -> None:
        for row in rows:
            self._remember(store.approval(row))

    def _remember(self, newest: Approval) -> None:
        known = self._known.get(newest.id)
        if known is None:
            heappush(self._expiries, (newest.expires, newest.id))
        elif RANKS[newest.state] <= RANKS[known.state]:
            return
        self._known[newest.id] = newest
        if newest.state not in OPEN:
            self._ended.append(newest.id)
        self._forget_old()

    def _forget_old(self) -> None:
        """Let go of those that expired long enough ago, and of the first that were refused or revoked."""
        now = self._clock.utcnow()
        while self._expiries and self._expiries[0][0] <= (now if len(self._known) > MOST_KNOWN else now - TOLD_AFTER_END):
            self._known.pop(heappop(self._expiries)[1], None)
        while len(self._ended) > MOST_ENDED:
            self._known.pop(self._ended.popleft(), None)
        if len(self._expiries) > 2 * len(self._known) + _LEAST_STALE:
            self._expiries = [(approval.expires, approval.id) for approval in self._known.values()]
            heapify(self._expiries)


class Approvals(Known):
    """Approvals, and the steps they take."""

    def __init__(
        self, engine: AsyncEngine, clock: Clock, metrics: Metrics, people: People, models: Models, *, timeout_ms: int, gaps: Gaps
    ) -> None:
        """`models`: the spec of a model by id, or None."""
        super().__init__(engine, clock, metrics, people, timeout_ms=timeout_ms)
        self._models = models
        self._gaps = gaps
        self._transactions = Transactions(engine, metrics, call="approvals", timeout_ms=timeout_ms)

    async def ask(self, wish: Wish, by: Principal) -> Approval:
        """A new approval, which opens nothing yet. Raises BadRequest, Conflict where the tenant has too many open, DatabaseDown."""
        wish.check(self._models(wish.model))
        wish.end(self._clock.utcnow())
        subject = self._people.pseudonyms.subject(wish.tenant, wish.subject_id) if wish.subject_id else None

        async def ask(connection: AsyncConnection, key: SubjectKey) -> Approval:
            now = self._clock.utcnow()
            sealed = key.seal({"reason": wish.reason, "subject": wish.subject_id})
            step = Step(by.name, by.key_id, now, sealed.texts["reason"])
            made = Approval(
                sealed.entry_id, wish.tenant, wish.model, wish.action, wish.purpose, subject, wish.end(now), state="asked", asked=step
            )
            if await store.count_open(connection, wish.tenant, now) >= MOST_OPEN:
                raise Conflict(f"tenant {wish.tenant!r} has {MOST_OPEN} open approvals", hint="Revoke those that nobody needs.")
            await store.insert(connection, made)
            await hand_over(connection, self._entry(made, step, sealed))
            return made

        return await self._change(subject, by, ask)

    def unneeded(self, approval: Approval) -> bool:
        """Whether the model, as its spec is by now, asks for no approval.

        Such an approval is taken all the same: specs follow their file, and a rule may read approvals that no spec asks for.
        """
        spec = self._models(approval.model)
        return spec is not None and (spec.sensitive is None or not spec.sensitive.approval)

    async def answer(self, identity: UUID, answer: Answered, by: Principal, reason: str) -> Approval:
        """Approve or refuse it, as somebody else than asked. Raises NotFound, SameAsker, ApprovalEnded, DatabaseDown."""

        def answered(current: Approval, step: Step) -> Approval:
            current.check_answer(by, step.at)
            return replace(current, state=answer, answered=step)

        return await self._step(identity, by, reason, answered, closes=answer == "refused")

    async def revoke(self, identity: UUID, by: Principal, reason: str) -> Approval:
        """Take an approved one back; again changes nothing. Raises NotFound, ApprovalEnded, DatabaseDown."""

        def revoked(current: Approval, step: Step) -> Approval:
            if current.state == "revoked":
                return current
            current.check_revocation(step.at)
            return replace(current, state="revoked", revoked=step)

        with self._closed(identity):
            return await self._step(identity, by, reason, revoked, closes=True)

    async def get(self, identity: UUID) -> Approval:
        """One approval, whatever became of it. Raises NotFound, DatabaseDown."""
        return await self._transactions.run(lambda connection: store.find(connection, identity))

    async def list(self, filters: Filters, *, most: int) -> list[Approval]:
        """A page of approvals, newest first. Raises DatabaseDown."""
        return await self._transactions.run(lambda connection: store.page(connection, filters, now=self._clock.utcnow(), most=most))

    async def keyring(self, approvals: Sequence[Approval]) -> Keyring:
        """What opens the reasons of these, as far as their keys are whole. Raises DatabaseDown."""
        steps = [step for approval in approvals for step in (approval.asked, approval.answered, approval.revoked)]
        return await self._people.keys.whole_ones(step.reason for step in steps if step)

    async def _step(
        self, identity: UUID, by: Principal, reason: str, moved: Callable[[Approval, Step], Approval], *, closes: bool
    ) -> Approval:
        """Make of the newest state, which is locked meanwhile, what `moved` makes of it; it refuses by raising.

        `closes`: a step that a damaged key of the subject must not prevent.
        """

        async def step(connection: AsyncConnection, key: SubjectKey) -> Approval:
            current = await store.lock(connection, identity)
            kept = key.seal({"reason": reason}, entry_id=identity)
            made = Step(by.name, by.key_id, self._clock.utcnow(), kept.texts["reason"])
            newest = moved(current, made)
            if newest is not current:
                await store.move(connection, newest, made)
                await hand_over(connection, self._entry(newest, made, key.seal({"reason": reason})))
            return newest

        with self._gaps.refusing():
            subject = (await self.get(identity)).subject
        return await self._change(subject, by, step, closes=closes)

    async def _change(
        self,
        subject: str | None,
        by: Principal,
        work: Callable[[AsyncConnection, SubjectKey], Awaitable[Approval]],
        *,
        closes: bool = False,
    ) -> Approval:
        """Run `work` in a transaction, with the key of the subject, or without one of who acts, and remember what it made."""
        with self._gaps.refusing():
            # Outside of the transaction, which holds a connection of the same pool already.
            key = await self._key(subject, by, closes=closes)
            newest = await self._transactions.run(lambda connection: work(connection, key))
        self._remember(newest)
        return newest

    async def _key(self, subject: str | None, by: Principal, *, closes: bool) -> SubjectKey:
        """Of the subject; of who acts where there is no subject, or where the subject's is damaged and the step must not fail by that."""
        try:
            return await (self._people.keys.key(subject) if subject else self._people.operator_key(by.name))
        except ConfigError:
            if subject is None or not closes:
                raise
            return await self._people.operator_key(by.name)

    def _entry(self, approval: Approval, step: Step, sealed: Sealed) -> Entry:
        facts = ApprovalFacts(
            str(approval.id), approval.tenant, approval.model, approval.action, approval.purpose, approval.subject, approval.expires
        )
        spec = self._models(approval.model)
        return approval_step(
            facts,
            approval.state,
            recorded=step.at,
            operator=step.by,
            retention_days=spec.sensitive.retention_days if spec and spec.sensitive else None,
            sealed=sealed,
        )
