"""/audit: what is in the log, proofs of it, and files that are checked elsewhere. For auditors and admins.

Whoever asks for entries, the proof of one, or an export is recorded in the log before the answer leaves, and so, soon after,
is whoever asks for them with a key that may not; whoever asks for a checkpoint or a proof between two is not, since these hold
no entry. A call without a key in force (401), or that no reader could make (400), leaves no entry.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.types import Send

from app.api.audit_answers import (
    CheckpointAnswer,
    ConsistencyAnswer,
    EntriesAnswer,
    EntryAnswer,
    ProofAnswer,
    checkpoint_answer,
    consistency_answer,
    entries_answer,
    entry_answer,
    proof_answer,
)
from app.api.query import known_query
from app.api.readers import Readers
from app.audit.people.people import People
from app.audit.people.pseudonyms import Pseudonyms
from app.audit.reading.entries import MAX_PAGE, Filters, Page
from app.audit.reading.export import MAX_ANCHORS, Wanted
from app.audit.reading.log import Export, Log
from app.audit.reading.refusals import Refusals
from app.audit.records.entry import MAX_INTEGER
from app.audit.records.kinds import KINDS
from app.errors import BadRequest, DependencyDown
from app.ids import identifier, model_id, tenant_id
from app.instants import Period

PAGE = 100
MAX_SEQ = MAX_INTEGER  # what a read was asked for stands in the log
NDJSON = "application/x-ndjson"
TEXT = "text/plain"

_PSEUDONYM = re.compile(r"p1:[0-9a-f]{64}")
_BY_ID = "Write tenant=TENANT&subject_id=ID to find a subject by its id."
_PLAIN = {"content": {TEXT: {"schema": {"type": "string"}}}}
_FILE: dict[str, Any] = {"description": "The file", "content": {NDJSON: {"schema": {"type": "string"}}}}

log = structlog.get_logger()

Seq = Annotated[int, Path(ge=0, le=MAX_SEQ, description="number of the entry, from 0")]
Accept = Annotated[str, Header(description="application/json or text/plain")]
From = Annotated[str | None, Query(alias="from", description="recorded then or later; RFC 3339")]
To = Annotated[str | None, Query(alias="to", description="recorded before; RFC 3339")]
Open = Annotated[bool, Query(alias="open", description="with sealed members in clear; the record of the read says so")]


def audit_router(audit: Log, people: People, refusals: Refusals, principal: Callable[..., Any]) -> APIRouter:
    """The routes under /audit. `people` find subjects and open what is sealed; `principal` is a dependency that gives the Principal."""
    router = APIRouter(prefix="/audit", tags=["audit"], dependencies=[Depends(known_query)])
    readers = Readers(principal, refusals)
    _add_entries(router, audit, people, readers)
    _add_proofs(router, audit, readers)
    _add_export(router, audit, readers)
    return router


def filters_of(pseudonyms: Pseudonyms) -> Callable[..., Filters]:
    """The dependency that makes filters of a query; `pseudonyms` stand for the ids of subjects, which go no further than this."""

    def filters(
        *,
        kind: Annotated[str | None, Query(description="of the entry, such as sensitive.access")] = None,
        tenant: str | None = None,
        model: str | None = None,
        subject: Annotated[str | None, Query(description="pseudonym: p1: and 64 hexadecimal digits")] = None,
        subject_id: Annotated[str | None, Query(description="in place of `subject`: the id in clear, one of `tenant`")] = None,
        decision: Annotated[str | None, Query(description="id of a decision")] = None,
        begin: From = None,
        end: To = None,
    ) -> Filters:
        """The filters of a query. Raises BadRequest naming the parameter."""
        tenant = None if tenant is None else tenant_id(tenant)
        return Filters(
            kind=None if kind is None else _kind(kind),
            tenant=tenant,
            model=None if model is None else model_id(model),
            subject=_subject(subject, subject_id, tenant, pseudonyms),
            decision=None if decision is None else _decision(decision),
            period=Period.parse(begin, end),
        )

    return filters


def _add_entries(router: APIRouter, audit: Log, people: People, readers: Readers) -> None:
    filters = filters_of(people.pseudonyms)

    def searched(wanted: Annotated[Filters, Depends(filters)]) -> Mapping[str, Any]:
        return {"query": wanted.as_query}

    @router.get("/entries", response_model_exclude_unset=True)
    async def list_entries(
        *,
        operator: Annotated[str, Depends(readers.of("entries", searched))],
        wanted: Annotated[Filters, Depends(filters)],
        order: Annotated[Literal["newest", "oldest"], Query(description="which come first")] = "newest",
        cursor: Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="`next` of the page before")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = PAGE,
        unseal: Open = False,
    ) -> EntriesAnswer:
        """Entries by number, a page at a time; pages do not shift while the log grows."""
        page = Page(limit, cursor, newest_first=order == "newest")
        return entries_answer(await audit.entries(wanted, page, operator=operator, keys=people.keys if unseal else None))

    @router.get("/entries/{seq}", response_model_exclude_unset=True)
    async def get_entry(
        *, operator: Annotated[str, Depends(readers.of("entry", _numbered))], seq: Number, unseal: Open = False
    ) -> EntryAnswer:
        """One entry by its number, counted from 0."""
        return entry_answer(await audit.entry(seq, operator=operator, keys=people.keys if unseal else None))

    @router.get("/entries/{seq}/proof", response_model=ProofAnswer, response_model_exclude_none=True, responses={200: _PLAIN})
    async def get_proof(
        *,
        operator: Annotated[str, Depends(readers.of("proof", _numbered))],
        seq: Number,
        size: Annotated[int | None, Query(ge=1, le=MAX_SEQ, description="of an older checkpoint")] = None,
        accept: Accept = "application/json",
    ) -> Any:
        """That an entry is under a signed checkpoint. As text/plain, a file that `verifier/verify.sh` checks."""
        proof = await audit.inclusion(seq, size, operator=operator)
        return PlainTextResponse(proof.file) if wants_text(accept) else proof_answer(proof)


def _add_proofs(router: APIRouter, audit: Log, readers: Readers) -> None:
    only_readers = [Depends(readers.unrecorded)]

    @router.get("/checkpoint", dependencies=only_readers, response_model=CheckpointAnswer, responses={200: _PLAIN})
    async def get_checkpoint(
        *,
        fresh: Annotated[bool, Query(description="have all signed first that is in the log now")] = False,
        accept: Accept = "application/json",
    ) -> Any:
        """The newest signed checkpoint; keep it where nobody of the log's operators can change it. As text/plain, the bare note."""
        certified = await audit.checkpoint(renewed=fresh)
        return PlainTextResponse(certified.checkpoint.note) if wants_text(accept) else checkpoint_answer(certified)

    @router.get("/consistency", dependencies=only_readers)
    async def get_consistency(
        old_size: Annotated[int, Query(alias="from", ge=1, le=MAX_SEQ, description="size of an older checkpoint")],
        new_size: Annotated[int | None, Query(alias="to", ge=1, le=MAX_SEQ, description="of a newer one; without it the newest")] = None,
    ) -> ConsistencyAnswer:
        """That the log was only added to between two checkpoints."""
        return consistency_answer(await audit.consistency(old_size, new_size))


def _add_export(router: APIRouter, audit: Log, readers: Readers) -> None:
    def exported(wanted: Annotated[Wanted, Depends(_wanted)]) -> Mapping[str, Any]:
        return {"query": wanted.as_query}

    @router.get("/export", response_class=StreamingResponse, responses={200: _FILE})
    async def get_export(
        operator: Annotated[str, Depends(readers.of("export", exported))], wanted: Annotated[Wanted, Depends(_wanted)]
    ) -> Response:
        """The entries of a period, or all, as one file that `sluice audit verify` checks without the log."""
        return ExportResponse(await audit.export(wanted, operator=operator))


class ExportResponse(StreamingResponse):
    """An export as it is made. Where the log fails in the middle the answer is cut off, so that nobody takes it for whole."""

    def __init__(self, export: Export) -> None:
        header = export.header
        name = f"sluice-audit-{header.first}-{header.end}.jsonl"
        super().__init__((), media_type=NDJSON, headers={"content-disposition": f'attachment; filename="{name}"'})
        self._export = export

    async def stream_response(self, send: Send) -> None:
        """Send the file, and the end of the answer only where the file has its own."""
        try:
            async with aclosing(self._export.lines) as pieces:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece.lines, "more_body": True})
        except DependencyDown as down:
            log.warning("an export was cut off", first=self._export.header.first, end=self._export.header.end, why=down.message)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def wants_text(accept: str) -> bool:
    """Whether plain text is named before JSON."""
    named = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((name == TEXT for name in named if name in (TEXT, "application/json")), False)


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise BadRequest(f"kind: the log has no kind {kind[:40]!r}", hint=f"Kinds are {', '.join(sorted(KINDS))}.", field="kind")
    return kind


def _subject(pseudonym: str | None, subject_id: str | None, tenant: str | None, pseudonyms: Pseudonyms) -> str | None:
    """The pseudonym to look for, given or made of an id."""
    if pseudonym is not None and not _PSEUDONYM.fullmatch(pseudonym):
        raise BadRequest("subject: not a pseudonym; p1: and 64 hexadecimal digits, as entries have it", hint=_BY_ID, field="subject")
    if subject_id is None:
        return pseudonym
    if pseudonym is not None:
        raise BadRequest("subject_id: in place of subject, not beside it", field="subject_id")
    if tenant is None:
        raise BadRequest("subject_id: needs a tenant, whose subject it is", hint=_BY_ID, field="subject_id")
    return pseudonyms.subject(tenant, identifier(subject_id, "subject_id"))


def _decision(decision: str) -> str:
    try:
        return str(UUID(decision))
    except ValueError:
        raise BadRequest("decision: not the id of a decision", field="decision") from None


def _seq(seq: Seq) -> int:
    return seq


Number = Annotated[int, Depends(_seq)]
"""Checked once, for the route and for who may take it."""


def _numbered(seq: Number) -> Mapping[str, Any]:
    return {"seq": seq}


def _wanted(
    begin: From = None,
    end: To = None,
    anchor: Annotated[
        list[int] | None, Query(max_length=MAX_ANCHORS, description="size of a checkpoint kept elsewhere; may be repeated")
    ] = None,
) -> Wanted:
    return Wanted(Period.parse(begin, end), _anchors(anchor or []))


def _anchors(sizes: list[int]) -> tuple[int, ...]:
    if any(not 0 < size <= MAX_SEQ for size in sizes):
        raise BadRequest("anchor: the size of a checkpoint is at least 1", field="anchor")
    return tuple(sizes)
