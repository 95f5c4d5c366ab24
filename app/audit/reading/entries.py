"""Entries as the log has them: one by its number, or pages of those that filters leave.

Filters look at columns beside the bodies, which nothing proves; what proves an entry is its leaf. Only what was sequenced
stands here: an entry is in the intake for some milliseconds before.

When down: DatabaseDown within the time-out; nothing is answered from memory.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

from psycopg.errors import QueryCanceled
from sqlalchemy import Row, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.leaf import Leaf, leaf_hash, sm3
from app.audit.reading.checkpoints import origin_and_size
from app.audit.reading.hashes import LogDamaged
from app.errors import BadRequest, NotFound
from app.instants import ALWAYS, Period

MAX_PAGE = 1000  # some 500 KB of answer

_RECORDED = "to_char(timezone('UTC', leaf.recorded), 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
_LEAF = f"leaf.seq, leaf.id, {_RECORDED} AS recorded, leaf.retention, leaf.body_hash, leaf.leaf_hash"
LEAF_COLUMNS = f"{_LEAF}, NULL::bytea AS body"
"""Of an entry whose body nobody wants to see."""
COLUMNS = f"{_LEAF}, body.body"
"""Of an entry. As text an instant is told, too, that somebody changed to one that no calendar has."""
BODY = "audit.body ON body.shelf = leaf.shelf AND body.seq = leaf.seq"
"""Where a leaf's body is, to be joined."""
_ENTRY = text(f"SELECT {COLUMNS} FROM audit.leaf LEFT JOIN {BODY} WHERE leaf.seq = :seq")  # noqa: S608 - constants
_CONDITIONS = {
    "kind": "body.kind = :kind",
    "tenant": "body.tenant = :tenant",
    "model": "body.model = :model",
    "subject": "body.subject = :subject",
    "decision": "body.decision = :decision",
    "begin": "body.recorded >= :begin",
    "end": "body.recorded < :end",
}


class NotInLog(NotFound):
    """The log has no entry of that number yet."""

    code = "not_in_log"
    hint = "GET /audit/checkpoint says how many entries are signed; with fresh=true all that are sequenced."


class SearchTooLong(BadRequest):
    """The log is too large to be searched for this within `database.timeout_ms`; nothing was read."""

    code = "search_too_long"
    hint = "Name a tenant, kind, model, subject or decision, or a shorter period; `sluice audit export` takes its time for a long one."


@dataclass(frozen=True, slots=True)
class Filters:
    """What an entry must be to stand on a page; None leaves all. `subject` is a pseudonym."""

    kind: str | None = None
    tenant: str | None = None
    model: str | None = None
    subject: str | None = None
    decision: str | None = None
    period: Period = ALWAYS
    """When it was recorded."""

    @property
    def bound(self) -> dict[str, Any]:
        """What leaves something out, by the name that its condition has."""
        return self._texts | self.period.bounds

    @property
    def as_query(self) -> dict[str, str]:
        """The same as parameters, for the record of who looked for what."""
        return self._texts | self.period.as_query

    @property
    def _texts(self) -> dict[str, str]:
        names = [field.name for field in fields(self) if field.name != "period"]
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Page:
    """Which entries of those that filters leave: at most `limit` from beyond `cursor` on, by number."""

    limit: int
    cursor: int | None = None
    """The number of the last entry that was seen; None begins at the newest or oldest."""
    newest_first: bool = True


BodyState = Literal["kept", "purged", "altered"]


@dataclass(frozen=True, slots=True)
class Logged:
    """One entry of the log; `body` is None where its shelf was purged."""

    leaf: Leaf
    leaf_hash: bytes
    """That was stored when the entry came."""
    body: bytes | None

    @property
    def seq(self) -> int:
        """Its number."""
        return self.leaf.seq

    @property
    def shelf(self) -> str:
        """Retention class and UTC month."""
        return self.leaf.shelf

    @property
    def state(self) -> BodyState:
        """Whether leaf and body are what was hashed when they came."""
        if leaf_hash(self.leaf.text) != self.leaf_hash:
            return "altered"
        if self.body is None:
            return "purged"
        return "kept" if sm3(self.body) == self.leaf.body_hash else "altered"


def logged(row: Row[Any]) -> Logged:
    """A row of the COLUMNS that an entry has."""
    leaf = Leaf(row.seq, str(row.id), row.recorded or "", row.retention, bytes(row.body_hash))
    return Logged(leaf, bytes(row.leaf_hash), None if row.body is None else bytes(row.body))


async def entries(connection: AsyncConnection, filters: Filters, page: Page) -> list[Logged]:
    """One page. A purged entry is on it only where no filter is set, since nothing is left of it to look at. Raises SearchTooLong."""
    given = filters.bound
    conditions = [_CONDITIONS[name] for name in given]
    if page.cursor is not None:
        conditions.append("leaf.seq < :cursor" if page.newest_first else "leaf.seq > :cursor")
    statement = (
        f"SELECT {COLUMNS} FROM audit.leaf {'' if given else 'LEFT '}JOIN {BODY} "  # noqa: S608 - constants, and a number
        f"WHERE {' AND '.join(conditions) or 'true'} ORDER BY leaf.seq {'DESC' if page.newest_first else 'ASC'} LIMIT :limit"
    )
    try:
        rows = await connection.execute(text(statement), given | {"cursor": page.cursor, "limit": page.limit})
    except OperationalError as error:
        if isinstance(error.orig, QueryCanceled):
            raise SearchTooLong(f"{', '.join(filters.as_query) or 'entries'}: not found in time") from None
        raise
    return [logged(row) for row in rows]


async def entry(connection: AsyncConnection, seq: int) -> Logged:
    """The entry with this number. Raises NotInLog beyond the log's end, LogDamaged where it should be and is not."""
    row = (await connection.execute(_ENTRY, {"seq": seq})).one_or_none()
    if row is not None:
        return logged(row)
    _, size = await origin_and_size(connection)
    if seq < size:
        raise LogDamaged(f"entry {seq} of {size} is missing in the log")
    raise NotInLog(f"seq: the log has {size} entries, numbered from 0, and none with number {seq}", field="seq")
