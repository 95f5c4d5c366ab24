"""`sluice report subject`: all that the log holds about one person, as PDF, JSON and CSV, and the entry that says that it was given.

The entry is committed before any file takes its name, so that whatever was given is in the log; a crash in between leaves an entry of
files that nobody got.

When down: LogBehind, SequencerSilent or DatabaseDown where the log cannot be read to its end, DependencyDown where the registry cannot
be asked for the person's key, AuditUnavailable where the entry cannot be written: nothing is given. LogDamaged where an entry of the
person does not lead to the signed root. A key that is destroyed or damaged keeps nothing else from being given, and is told.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.audit.intake.intake import Intake
from app.audit.people.people import People
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.log import AuditUnavailable
from app.audit.reading.proven import Proven, ProvenEntries
from app.audit.records.entry import Sealed
from app.audit.records.subject import subject_access
from app.clock import Clock
from app.errors import BadRequest, DependencyDown
from app.reports.document import Text
from app.reports.evidence.facts import MOST_LISTED, SubjectRequest
from app.reports.evidence.registers import ANSWERED_BY
from app.reports.subjects.answer import Answer, Responsible, Summary
from app.reports.subjects.binding import Binder
from app.reports.subjects.drafts import Drafts, drafts
from app.reports.subjects.files import EntriesCsv, JsonFile
from app.reports.subjects.outside import Outside
from app.reports.subjects.pages import row
from app.reports.subjects.person import Person
from app.reports.subjects.requests import Requests
from app.reports.subjects.view import Masks, Shown, Texts, shown, texts_of

BASIS = "GDPR Art. 15"
"""Where no request says under which article."""


@dataclass(frozen=True, slots=True)
class Given:
    """A report that was given."""

    id: str
    count: int
    met: int
    """Entries that tell of more than that somebody asked about the person; 0 is what a name that was mistyped has."""
    files: Sequence[Path]


class SubjectReports:
    """Makes reports for single persons."""

    def __init__(
        self,
        entries: ProvenEntries,
        intake: Intake,
        people: People,
        *,
        requests: Requests,
        outside: Outside,
        clock: Clock,
        binder: Binder,
        by: Responsible,
    ) -> None:
        """`by`: who is responsible, as the reports say it."""
        self._entries = entries
        self._intake = intake
        self._people = people
        self._requests = requests
        self._outside = outside
        self._clock = clock
        self._binder = binder
        self._by = by

    async def give(self, person: Person, folder: Path, *, operator: str, request_id: str | None = None) -> Given:
        """Put the report for `person` into `folder`, in answer to the open request `request_id` where that is given.

        Raises BadRequest, UnknownRequest, RequestClosed, RequestBusy, ConfigError, LogDamaged, and as the module says.
        """
        await self._people.check()
        async with self._requests.answering.alone(request_id):
            return await self._give(person, folder, operator, request_id)

    async def _give(self, person: Person, folder: Path, operator: str, request_id: str | None) -> Given:
        entry = Sealed()
        answer = await self._answer(person, str(entry.entry_id), request_id)
        with drafts(folder) as writing:
            summary = await self._write(answer, writing)
            await self._record(answer, summary, writing.sums(), entry, operator)
            files = writing.give()
        return Given(answer.id, summary.entries, summary.met, files)

    async def _answer(self, person: Person, answer_id: str, request_id: str | None) -> Answer:
        subject = person.pseudonym(self._people.pseudonyms)
        request = None if request_id is None else await self._request(request_id, subject)
        closing = await self._entries.closing()
        return Answer(
            id=answer_id,
            made=self._clock.utcnow(),
            person=person,
            pseudonym=subject,
            legal_basis=request.article if request else BASIS,
            request=request,
            closing=closing,
            key=await self._people.keys.kept(subject),
            held=await self._outside.held(person, subject),
            by=self._by,
        )

    async def _request(self, request_id: str, subject: str) -> SubjectRequest:
        """The open request of this person that such a report answers."""
        request = await self._requests.find_open(request_id)
        if request.subject != subject:
            raise BadRequest(
                "--request: is another person's",
                hint="`sluice report request list` with the same --tenant, --id or --operator shows this person's.",
                field="request",
            )
        if request.article not in ANSWERED_BY["subject.access"]:
            raise BadRequest(
                f"--request: asks under {request.article}, which a report does not answer",
                hint="Close it with `sluice report request answer` or `refuse`.",
                field="request",
            )
        return request

    async def _write(self, answer: Answer, writing: Drafts) -> Summary:
        """All files of the report, as drafts."""
        summary, rows = Summary(), list[Sequence[Text]]()
        json_name, csv_name = f"{answer.name}.json", f"{answer.name}.csv"
        with writing.new(json_name) as json_stream, writing.new(csv_name) as csv_stream:
            json_file, csv_file = JsonFile(json_stream, answer), EntriesCsv(csv_stream)
            async with contextlib.aclosing(self._shown(answer)) as entries:
                async for entry in entries:
                    summary.add(entry)
                    json_file.add(entry)
                    csv_file.entry(entry)
                    if len(rows) < MOST_LISTED:
                        rows.append(row(entry))
            json_file.end(summary)
        await asyncio.to_thread(self._bind, answer, summary, rows, writing)
        return summary

    def _bind(self, answer: Answer, summary: Summary, rows: Sequence[Sequence[Text]], writing: Drafts) -> None:
        self._binder.bind(answer, summary, rows, writing)
        for suffix in (".json", ".csv"):
            self._binder.sign_beside(writing, f"{answer.name}{suffix}", answer.made)

    async def _shown(self, answer: Answer) -> AsyncGenerator[Shown]:
        """The entries of the person, as they are shown, by number."""
        person, masks = answer.person, Masks(answer.person)
        search = person.search(answer.pseudonym)
        async with contextlib.aclosing(self._entries.batches(search, answer.closing.checkpoint)) as batches:
            async for batch in batches:
                sealed = [text for entry in batch for text in entry.body.get("sealed", {}).values()]
                others = await self._people.keys.of_others(answer.pseudonym, sealed)
                for entry in batch:
                    texts = texts_of(entry, person, answer.pseudonym, answer.key, others)
                    _check_person(entry, person, texts)
                    yield shown(entry, person, masks, texts)

    async def _record(self, answer: Answer, summary: Summary, files: list[dict[str, str]], entry: Sealed, operator: str) -> None:
        """Commit that the report is given. Raises AuditUnavailable."""
        given = subject_access(
            recorded=self._clock.utcnow(),
            operator=operator,
            tenant=answer.person.tenant,
            subject=answer.pseudonym,
            count=summary.entries,
            files=files,
            legal_basis=answer.legal_basis,
            request=answer.request.id if answer.request else None,
            entry=entry,
        )
        signing = self._binder.signing
        owed = await signing.introduced(self._entries, answer.closing, answer.made) if signing else []
        try:
            await self._intake.write(*owed, given)
        except DependencyDown as down:
            raise AuditUnavailable(f"that the report is given could not be recorded, so it is not given: {down.message}") from None


def _check_person(entry: Proven, person: Person, texts: Texts) -> None:
    """Raise LogDamaged where the id that is sealed in an entry is not that of the person whose pseudonym the entry has."""
    said = texts.opened.get("subject")
    if person.role == "subject" and said is not None and said != person.name:
        raise LogDamaged(f"entry {entry.logged.seq} has the pseudonym of one person and the sealed id of another")
