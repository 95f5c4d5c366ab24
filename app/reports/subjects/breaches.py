"""Breaches of personal data: when they became known, who was told and when (GDPR Art. 33 and 34). Derived from the log alone.

When down: as app/reports/subjects/requests.py.
"""

from datetime import datetime

from uuid_utils.compat import uuid7

from app.audit.intake.intake import Intake
from app.audit.people.people import People
from app.audit.reading.proven import ProvenEntries, of_kinds
from app.audit.records.breach import Whom, breach_known, breach_notified
from app.audit.records.entry import MAX_INTEGER
from app.audit.records.log import log_read
from app.clock import Clock
from app.errors import BadRequest, NotFound
from app.ids import tenant_id, words
from app.instants import instant, rfc3339
from app.reports.evidence.facts import Breach, Logged
from app.reports.evidence.registers import BREACH_KINDS, breaches
from app.reports.subjects.due import happened, notice_due

MOST_TEXT_CHARS = 20_000
"""What GDPR Art. 33(3) asks for fits into it."""


class UnknownBreach(NotFound):
    """No breach has this id."""

    code = "unknown_breach"
    hint = "`sluice report breach list` shows all ids."


class Breaches:
    """The register of breaches, in one log."""

    def __init__(self, entries: ProvenEntries, intake: Intake, people: People, clock: Clock) -> None:
        self._entries = entries
        self._intake = intake
        self._people = people
        self._clock = clock

    async def known(self, aware: str, what: str, *, tenant: str | None, people: int | None, operator: str) -> Breach:
        """Write down that a breach became known at `aware`, RFC 3339, of `people` persons. Raises BadRequest, DependencyDown."""
        now, at = self._clock.utcnow(), instant(aware, "--aware")
        happened(at, now, "aware")
        if people is not None and not 0 <= people <= MAX_INTEGER:
            raise BadRequest("--people: must be 0 or more", field="people")
        text = words(what, "--what", MOST_TEXT_CHARS)
        due = notice_due(at)
        said = Breach(str(uuid7()), tenant_id(tenant) if tenant is not None else None, rfc3339(at), rfc3339(due), people)
        key = await self._people.operator_key(operator)
        entry = breach_known(
            recorded=now,
            operator=operator,
            tenant=said.tenant,
            breach=said.id,
            aware=at,
            due=due,
            people=people,
            sealed=key.seal({"problem": text}),
        )
        await self._intake.write(entry)
        return said

    async def notified(self, breach_id: str, whom: Whom, at: str | None, reason: str | None, *, operator: str) -> Breach:
        """Write down that `whom` was told at `at`, now by default; `reason` says why that was late.

        Raises BadRequest where the authority is first told late and no reason is given (GDPR Art. 33(1) sentence 2), UnknownBreach,
        DependencyDown.
        """
        now = self._clock.utcnow()
        told = now if at is None else instant(at, "--at")
        happened(told, now, "at")
        text = None if reason is None else words(reason, "--reason", MOST_TEXT_CHARS)
        found = await self._find(breach_id)
        _check_time(found, whom, told, text)
        key = await self._people.operator_key(operator)
        entry = breach_notified(
            recorded=now,
            operator=operator,
            tenant=found.tenant,
            breach=found.id,
            whom=whom,
            at=told,
            sealed=key.seal({"reason": text}),
        )
        await self._intake.write(entry)
        return found

    async def listed(self, *, operator: str) -> list[Breach]:
        """All breaches; the log has who looked. Raises DependencyDown, LogDamaged."""
        found = await self._all()
        query = {"kind": "breach.known"}
        await self._intake.write(log_read(recorded=self._clock.utcnow(), operator=operator, read="entries", query=query, count=len(found)))
        return found

    async def _find(self, breach_id: str) -> Breach:
        found = next((breach for breach in await self._all() if breach.id == breach_id), None)
        if found is None:
            raise UnknownBreach(f"breach {breach_id!r} is not in the log", field="breach")
        return found

    async def _all(self) -> list[Breach]:
        closing = await self._entries.closing()
        found = await self._entries.all(of_kinds(*BREACH_KINDS), closing.checkpoint)
        return breaches(Logged(one.logged.seq, one.body, one.logged.leaf.retention) for one in found)


def hours_left(breach: Breach, now: datetime) -> float | None:
    """Hours until the authority must be told, negative where it is late; None where it was told."""
    if "authority" in breach.notified:
        return None
    return (instant(breach.due, "due") - now).total_seconds() / 3600


def hours_late(breach: Breach, now: datetime) -> float | None:
    """By how many hours the authority was told late, or is not told by now; None where it is not late."""
    told = breach.notified.get("authority")
    hours = ((instant(told, "at") if told else now) - instant(breach.due, "due")).total_seconds() / 3600
    return hours if hours > 0 else None


def _check_time(breach: Breach, whom: Whom, told: datetime, reason: str | None) -> None:
    if told < instant(breach.known, "known"):
        raise BadRequest(f"--at: is before the breach became known at {breach.known}", field="at")
    # The first notice is the one that may be late: what is found out later follows in phases (Art. 33(4)).
    first = whom == "authority" and whom not in breach.notified
    if first and told > instant(breach.due, "due") and reason is None:
        raise BadRequest(
            f"--reason: is missing; the authority was to be told before {breach.due}",
            hint="GDPR Art. 33(1) sentence 2: a notification after 72 hours says why it is late.",
            field="reason",
        )
