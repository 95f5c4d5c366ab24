"""What the log still holds of each retention class, by the shelves that its bodies stand on.

The oldest body of a class is proven like any older entry. That there are no other classes, how many bodies there are, and what was there
and is gone, is not proven by it.

When down: DatabaseDown. Counting the bodies of a large log takes longer than a report may wait: then their number is unknown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.errors import QueryCanceled
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.checkpoint import MAX_SIZE
from app.audit.reading.entries import BODY, COLUMNS, logged
from app.reports.evidence.facts import Closing, RetentionClass
from app.reports.evidence.proven import proven

COUNTING_MS = 10_000
_SHELF = re.compile(r"body_(d[1-9][0-9]{2,3})_([0-9]{4})_([0-9]{2})", re.ASCII)
_SHELVES = text("SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'audit.body'::regclass")
_OLDEST = text("SELECT seq FROM audit.body WHERE shelf = :shelf AND recorded < :before AND seq < :size ORDER BY seq LIMIT 1")
_LEAF = text(f"SELECT {COLUMNS} FROM audit.leaf JOIN {BODY} WHERE leaf.seq = :seq")  # noqa: S608 - constants
_COUNT = text("SELECT split_part(shelf, '-', 1) AS name, count(*) AS bodies FROM audit.body WHERE recorded < :before GROUP BY 1")
_QUICKLY = text(f"SELECT set_config('statement_timeout', '{COUNTING_MS}', true)")


@dataclass(frozen=True, slots=True)
class Kept:
    """All classes, by days."""

    classes: Sequence[RetentionClass]
    unproven: Sequence[int]
    """Numbers of bodies that are the oldest of their class, and not proven."""
    proofs: Mapping[int, str]
    known: bool
    """Whether each class has a name that says its days, and its oldest body is proven."""


async def kept(connection: AsyncConnection, before: datetime, closing: Closing | None) -> Kept:
    """Each class that has a shelf, with what was recorded before `before` and lies under `closing`."""
    size = MAX_SIZE if closing is None else closing.checkpoint.size
    names = [row.relname for row in await connection.execute(_SHELVES)]
    counts = await _counts(connection, before)
    found: list[RetentionClass] = []
    unproven: list[int] = []
    proofs: dict[int, str] = {}
    for name, shelves in _by_class(names).items():
        seq = await _oldest(connection, shelves, {"before": before, "size": size})
        result = await proven(connection, [logged(row) for row in await connection.execute(_LEAF, {"seq": seq})], closing)
        entry = next(iter(result.entries), None)
        bodies = None if counts is None else counts.get(name, 0)
        since, number = (entry.recorded, entry.seq) if entry else (None, None)
        found.append(RetentionClass(name, int(name[1:]), since, bodies, number))
        if seq is not None and entry is None:
            unproven.append(seq)
        proofs |= result.proofs
    known = not unproven and all(map(_SHELF.fullmatch, names))
    return Kept(sorted(found, key=lambda one: one.days), unproven, proofs, known)


def _by_class(tables: Iterable[str]) -> dict[str, list[str]]:
    """The shelves of each class, the oldest first."""
    classes: dict[str, list[str]] = {}
    for match in filter(None, map(_SHELF.fullmatch, sorted(tables))):
        name, year, month = match.groups()
        classes.setdefault(name, []).append(f"{name}-{year}-{month}")
    return classes


async def _oldest(connection: AsyncConnection, shelves: Iterable[str], bounds: Mapping[str, Any]) -> int | None:
    """The number of the first body within `bounds` of the first of these shelves that has one."""
    for shelf in shelves:
        found: int | None = (await connection.execute(_OLDEST, {"shelf": shelf, **bounds})).scalar()
        if found is not None:
            return found
    return None


async def _counts(connection: AsyncConnection, before: datetime) -> dict[str, int] | None:
    try:
        async with connection.begin_nested():  # what is set in it is set back where it is rolled back
            await connection.execute(_QUICKLY)
            return {row.name: row.bodies for row in await connection.execute(_COUNT, {"before": before})}
    except OperationalError as error:
        if isinstance(error.orig, QueryCanceled):
            return None
        raise
