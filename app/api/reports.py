"""/reports: the finished nights, whether they are as they were signed, and their files. For auditors and admins.

Whoever takes a file is recorded in the log before it leaves, and so, soon after, is whoever may not; which nights there are, and
what their manifests say, holds no entry of the log and is not recorded.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from app.api.query import known_query
from app.api.readers import Readers
from app.audit.reading.log import Log
from app.audit.reading.refusals import Refusals
from app.errors import BadRequest
from app.reports.manifest import ROOT, SCRIPT, Manifest, NotAManifest, media_type
from app.reports.shelf.compared import Manifests, all_of, contradiction, made_or_none, telling_missing, vouched
from app.reports.shelf.shelf import REPORT, Shelf, ShelvedFile, UnknownReport, order
from app.reports.shelf.states import State, States

PAGE, MAX_PAGE = 31, 366
STATE_WITHIN_S = 2.0
"""How long an answer waits for what is being checked; checking goes on, and the next answer has it."""
STATE_HEADER = "sluice-report-state"
_FILE: dict[str, Any] = {
    "description": "The file",
    "content": {"application/octet-stream": {"schema": {"type": "string"}}},
    "headers": {
        "Sluice-Report-State": {
            "description": "the verdict on its night, as GET /reports has it; absent while that is being checked, and of root.pem and verify.sh, "
            "which nothing vouches for",
            "schema": {"type": "string", "enum": ["valid", "tampered", "unchecked"]},
        }
    },
}
_MOST_CHARS = 128

Id = Annotated[str, InPath(max_length=_MOST_CHARS, description="id of a report: day, zone and number, such as 2026-11-29-asia-shanghai-1")]
Name = Annotated[str, InPath(max_length=_MOST_CHARS, description="name of a file, as the report lists it")]


class Verification(BaseModel):
    """Whether a night's files are as they were signed, under the root certificate of the report keys that this replica has."""

    verdict: Literal["valid", "tampered", "unchecked", "missing"]
    why: str = Field(description="empty where it is valid")


class ReportLine(BaseModel):
    """One finished night."""

    report: str
    verification: Verification | None = Field(description="null while it is being checked: ask again")
    day: str | None = Field(description="null, as all that follows, where its manifest cannot be read")
    zone: str | None
    begin: str | None
    end: str | None
    made: str | None
    counts: dict[str, int] | None


class ReportsAnswer(BaseModel):
    """One page of nights, the newest first."""

    reports: list[ReportLine]
    next: str | None = Field(description="the `cursor` of the next page; null where nothing follows")


class ReportAnswer(BaseModel):
    """What one night says of itself, and its files."""

    report: str
    verification: Verification | None = Field(description="null while it is being checked: ask again")
    manifest: dict[str, Any] = Field(description="as it is signed in manifest.json; docs/explanation.md says what each part means")
    files: list[str] = Field(description="names of all files, those for checking among them")


def reports_router(
    shelf: Shelf, states: States, made: Callable[[], Awaitable[Manifests]], audit: Log, *, refusals: Refusals, principal: Callable[..., Any]
) -> APIRouter:
    """The routes under /reports. `made` gives what the log says was made, `principal` is a dependency that gives the Principal."""
    router = APIRouter(prefix="/reports", tags=["reports"], dependencies=[Depends(known_query)])
    readers = Readers(principal, refusals)
    nights = _Nights(shelf, states, made)
    _add_lists(router, nights, readers)
    _add_files(router, nights, audit, readers)
    return router


@dataclass(frozen=True, slots=True)
class _Nights:
    """What is on the shelf, beside what checking finds and what the log says."""

    shelf: Shelf
    states: States
    made: Callable[[], Awaitable[Manifests]]

    async def logged(self) -> Manifests:
        """What the log says was made; nothing while it cannot be asked."""
        return await made_or_none(self.made)

    async def states_of(self, folders: list[Path], made: Manifests) -> list[State | None]:
        """What the log has against a folder counts before what checking it finds, and it alone vouches for one under another root."""
        against = await asyncio.to_thread(lambda: [contradiction(folder, made) for folder in folders])
        rest = iter(await self.states.of([folder for folder, state in zip(folders, against, strict=True) if state is None], STATE_WITHIN_S))
        found = [next(rest) if state is None else state for state in against]
        return [state and vouched(folder.name, state, made) for folder, state in zip(folders, found, strict=True)]

    async def file(self, report: str, name: str) -> tuple[ShelvedFile, State | None]:
        """A file, and the state of its night. Raises UnknownReport, ShelfDown, NotAManifest."""
        made = await self.logged()
        found = await asyncio.to_thread(_file, self.shelf, report, name, made)
        (state,) = await self.states_of([found.path.parent], made)
        return found, state


def _add_lists(router: APIRouter, nights: _Nights, readers: Readers) -> None:
    only_readers = [Depends(readers.unrecorded)]

    @router.get("", dependencies=only_readers)
    async def list_reports(
        *,
        cursor: Annotated[str | None, Query(max_length=_MOST_CHARS, description="`next` of the page before")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = PAGE,
    ) -> ReportsAnswer:
        """The finished nights, the newest day first, of one day the last that was made; and whether they are as they were signed.

        What the log says was made, and is not here, is among them as `missing`.
        """
        made = await nights.logged()
        shown, following = await asyncio.to_thread(_page, nights.shelf, made, cursor, limit)
        found = await nights.states_of([nights.shelf.path / report for report, _ in shown], made)
        lines = [_line(report, manifest, state) for (report, manifest), state in zip(shown, found, strict=True)]
        return ReportsAnswer(reports=lines, next=following)

    @router.get("/{report}", dependencies=only_readers)
    async def get_report(report: Id) -> ReportAnswer:
        """One night: its manifest, and the names of its files."""
        made = await nights.logged()
        folder, manifest, names = await asyncio.to_thread(_whole, nights.shelf, report, made)
        (state,) = await nights.states_of([folder], made)
        return ReportAnswer(report=report, verification=_verification(state), manifest=manifest.document(), files=names)


def _add_files(router: APIRouter, nights: _Nights, audit: Log, readers: Readers) -> None:
    allowed = Annotated[str, Depends(readers.of("report", _named))]

    @router.get("/{report}/{file}", response_class=FileResponse, responses={200: _FILE})
    async def get_report_file(operator: allowed, report: Id, file: Name) -> Response:
        """One file of a night, whatever became of it; that it was read is in the log before it leaves.

        Where its manifest cannot be read, only the files of fixed names are there: manifest.json itself, its signature and time stamp,
        root.pem and verify.sh.
        """
        found, state = await nights.file(report, file)
        await audit.report_read(report, file, operator=operator)
        return _answer(found, state)

    @router.head("/{report}/{file}", response_class=FileResponse, dependencies=[Depends(readers.unrecorded)])
    async def look_at_report_file(report: Id, file: Name) -> Response:
        """Size, type and digest of a file; nothing of it leaves, and it is not recorded."""
        return _answer(*await nights.file(report, file))


class _AsFound(FileResponse):
    """A file of the shelf: not what took its name since it was found, neither a link that leads elsewhere nor a pipe that would never end."""

    def __init__(self, file: ShelvedFile, **said: Any) -> None:
        super().__init__(file.path, stat_result=file.found, **said)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with await asyncio.to_thread(self._file.open) as stream:
            self.path = f"/dev/fd/{stream.fileno()}"
            await super().__call__(scope, receive, send)


def _answer(file: ShelvedFile, state: State | None) -> FileResponse:
    headers = {"x-content-type-options": "nosniff", "cache-control": "private, no-cache"}
    if file.sm3:
        headers["etag"] = f'"sm3-{file.sm3}"'
    name = file.path.name  # as the manifest has it: under another name nothing of the night could be checked
    if state is not None and name not in (ROOT, SCRIPT):
        headers[STATE_HEADER] = state.verdict
    return _AsFound(file, headers=headers, media_type=media_type(name), filename=name)


def _page(shelf: Shelf, made: Manifests, cursor: str | None, limit: int) -> tuple[list[tuple[str, Manifest | None]], str | None]:
    """Reports with what they say of themselves, and the cursor of the next page."""
    reports = _after(all_of(shelf, made), cursor)
    shown = reports[:limit]
    return [(report, _manifest(shelf, report)) for report in shown], shown[-1] if len(reports) > limit else None


def _whole(shelf: Shelf, report: str, made: Manifests) -> tuple[Path, Manifest, list[str]]:
    with telling_missing(report, made):
        manifest = shelf.manifest(report)
        return shelf.folder(report), manifest, shelf.names(report, manifest)


def _file(shelf: Shelf, report: str, file: str, made: Manifests) -> ShelvedFile:
    with telling_missing(report, made):
        return shelf.file(report, file)


def _after(reports: list[str], cursor: str | None) -> list[str]:
    """Those that follow `cursor`, which may be gone. Raises BadRequest."""
    if cursor is None:
        return reports
    if not REPORT.fullmatch(cursor):
        raise BadRequest("cursor: not the id of a report", hint="Send `next` of the page before.", field="cursor")
    return [report for report in reports if order(report) < order(cursor)]


def _manifest(shelf: Shelf, report: str) -> Manifest | None:
    try:
        return shelf.manifest(report)
    except (NotAManifest, UnknownReport):
        return None


def _line(report: str, manifest: Manifest | None, state: State | None) -> ReportLine:
    said = manifest.document() if manifest else {}
    facts = {name: said.get(name) for name in ("day", "zone", "begin", "end", "made", "counts")}
    return ReportLine(report=report, verification=_verification(state), **facts)


def _verification(state: State | None) -> Verification | None:
    return None if state is None else Verification(verdict=state.verdict, why=state.why)


def _named(report: Id, file: Name) -> Mapping[str, Any]:
    """What the log is told of a refused reader: an id that no report can have, and a name that no file can, are not repeated there."""
    return {"report": report if REPORT.fullmatch(report) else None, "file": file if file.isascii() and file.isprintable() else None}
