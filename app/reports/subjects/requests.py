"""What people ask for about themselves: opened, answered, refused, listed. How each stands is derived from the log alone.

When down: LogBehind, SequencerSilent or DatabaseDown where the log cannot be read to its end, DependencyDown where an entry cannot be
written or its key not be had; nothing is changed then.
"""

import re
from datetime import datetime
from typing import Any, Literal

from uuid_utils.compat import uuid7

from app.audit.intake.intake import Intake
from app.audit.people.people import People
from app.audit.reading.proven import ProvenEntries, of_kinds
from app.audit.records.entry import Sealed
from app.audit.records.log import log_read
from app.audit.records.subject import subject_answer, subject_request
from app.clock import Clock
from app.errors import BadRequest, Conflict, NotFound
from app.ids import words
from app.instants import instant, rfc3339
from app.reports.evidence.facts import Logged, SubjectRequest
from app.reports.evidence.registers import REQUEST_KINDS, open_requests, subject_requests
from app.reports.subjects.answering import Answering
from app.reports.subjects.due import answer_due, happened
from app.reports.subjects.person import Person

ARTICLES = (15, 16, 17, 18, 20, 21)
"""Of the GDPR: access, rectification, erasure, restriction, portability, objection."""
MOST_NOTE_CHARS = 4000
DAY_S = 86_400
_GROUND = re.compile(r"(?:(GDPR|PIPL) )?(Art\. [1-9][0-9]{0,2}(?:\([1-9][0-9]?\))?(?:\([a-z]\))?)", re.ASCII)


class UnknownRequest(NotFound):
    """No person's request has this id."""

    code = "unknown_request"
    hint = "`sluice report request list` shows all ids."


class RequestClosed(Conflict):
    """The request was answered or refused already."""

    code = "request_closed"
    hint = "`sluice report request list` says when; open a new one where the person asks again."


class Requests:
    """Requests of people, in one log."""

    def __init__(self, entries: ProvenEntries, intake: Intake, people: People, clock: Clock, *, answering: Answering, zone: str) -> None:
        """`zone`: by whose calendar an answer is due."""
        self._entries = entries
        self._intake = intake
        self._people = people
        self._clock = clock
        self._zone = zone
        self.answering = answering

    async def open(self, person: Person, article: int, received: str | None, *, operator: str) -> SubjectRequest:
        """Write down that `person` asked under `article` at `received`, RFC 3339, now by default. Raises BadRequest, DependencyDown."""
        now = self._clock.utcnow()
        if article not in ARTICLES:
            raise BadRequest(f"--article: must be one of {', '.join(map(str, ARTICLES))}", field="article")
        asked = now if received is None else instant(received, "--received")
        happened(asked, now, "received")
        subject = person.pseudonym(self._people.pseudonyms)
        key = await self._people.keys.key(subject)
        said = SubjectRequest(
            id=str(uuid7()),
            tenant=person.tenant,
            subject=subject,
            article=f"GDPR Art. {article}",
            asked=rfc3339(asked),
            due=rfc3339(answer_due(asked, self._zone)),
            status="open",
        )
        entry = subject_request(
            recorded=now,
            operator=operator,
            tenant=said.tenant,
            request=said.id,
            subject=subject,
            article=said.article,
            received=asked,
            due=answer_due(asked, self._zone),
            sealed=key.seal({"subject": person.name}),
        )
        await self._intake.write(entry)
        return said

    async def answer(self, request_id: str, note: str | None, *, operator: str) -> SubjectRequest:
        """Write down that an open request was answered outside of Sluice. Raises UnknownRequest, RequestClosed, RequestBusy, DependencyDown."""
        return await self._close(request_id, "done", None, note, operator)

    async def refuse(self, request_id: str, ground: str, note: str | None, *, operator: str) -> SubjectRequest:
        """Write down that an open request was refused on `ground`, an article. Raises BadRequest and as `answer` does."""
        return await self._close(request_id, "refused", _ground(ground), note, operator)

    async def find_open(self, request_id: str) -> SubjectRequest:
        """The open request with this id. Raises UnknownRequest, RequestClosed, DependencyDown, LogDamaged."""
        found = next((request for request in await self._all() if request.id == request_id), None)
        if found is None:
            raise UnknownRequest(f"request {request_id!r} is not in the log", field="request")
        if found.status != "open":
            raise RequestClosed(f"request {request_id} was {_SAID[found.status]} at {found.answered}", field="request")
        return found

    async def listed(self, *, operator: str, only_open: bool, person: Person | None = None) -> list[SubjectRequest]:
        """All requests, of `person` where one is named, or those that wait for an answer; the log has who looked for what.

        Raises DependencyDown, LogDamaged.
        """
        found = await self._all()
        query: dict[str, Any] = {"kind": "subject.request"} | ({"open": True} if only_open else {})
        if person is not None:
            subject = person.pseudonym(self._people.pseudonyms)
            found = [request for request in found if request.subject == subject]
            query |= {"tenant": person.tenant, "subject": subject}
        shown = list(open_requests(found)) if only_open else found
        looked = log_read(recorded=self._clock.utcnow(), operator=operator, read="entries", query=query, count=len(shown))
        await self._intake.write(looked)
        return shown

    async def _all(self) -> list[SubjectRequest]:
        closing = await self._entries.closing()
        found = await self._entries.all(of_kinds(*REQUEST_KINDS), closing.checkpoint)
        return subject_requests(Logged(one.logged.seq, one.body, one.logged.leaf.retention) for one in found)

    async def _close(
        self, request_id: str, outcome: Literal["done", "refused"], ground: str | None, note: str | None, operator: str
    ) -> SubjectRequest:
        text = None if note is None else words(note, "--note", MOST_NOTE_CHARS)
        async with self.answering.alone(request_id):
            found = await self.find_open(request_id)
            sealed = await self._sealed(found.subject, text) if text is not None else None
            entry = subject_answer(
                recorded=self._clock.utcnow(),
                operator=operator,
                tenant=found.tenant,
                request=found.id,
                subject=found.subject,
                outcome=outcome,
                ground=ground,
                sealed=sealed,
            )
            await self._intake.write(entry)
        return found

    async def _sealed(self, subject: str, text: str) -> Sealed:
        return (await self._people.keys.key(subject)).seal({"reason": text})


_SAID = {"done": "answered", "refused": "refused"}


def _ground(text: str) -> str:
    """An article as the log has it: with the law, the GDPR where none is named. Raises BadRequest: the ground stands in clear."""
    match = _GROUND.fullmatch(text)
    if match is None:
        raise BadRequest(
            f"--ground: {text!r} is no article",
            hint="Write one such as 'Art. 12(5)' or 'PIPL Art. 45'; anything more goes into --note, which is sealed.",
            field="ground",
        )
    return f"{match[1] or 'GDPR'} {match[2]}"


def days_left(request: SubjectRequest, now: datetime) -> float | None:
    """Days until the answer is due, negative where it is late; None where it was answered or refused."""
    if request.status != "open":
        return None
    return (instant(request.due, "due") - now).total_seconds() / DAY_S


def days_late(request: SubjectRequest, now: datetime) -> float | None:
    """By how many days the answer came late, or has not come by now; None where it is not late."""
    ended = instant(request.answered, "answered") if request.answered else now
    days = (ended - instant(request.due, "due")).total_seconds() / DAY_S
    return days if days > 0 else None
