"""What the log still holds of each retention class, by the shelves that its bodies stand on.

When down: DatabaseDown. Counting the bodies of a large log takes longer than a report may wait: then their number is unknown.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from psycopg.errors import QueryCanceled
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.instants import rfc3339
from app.reports.evidence.facts import RetentionClass

COUNTING_MS = 10_000
_SHELF = re.compile(r"body_(d[1-9][0-9]{2,3})_([0-9]{4})_([0-9]{2})", re.ASCII)
_SHELVES = text("SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'audit.body'::regclass")
_OLDEST = text("SELECT seq, recorded FROM audit.body WHERE shelf = :shelf AND recorded < :before ORDER BY seq LIMIT 1")
_COUNT = text("SELECT split_part(shelf, '-', 1) AS name, count(*) AS bodies FROM audit.body WHERE recorded < :before GROUP BY 1")
_QUICKLY = text(f"SELECT set_config('statement_timeout', '{COUNTING_MS}', true)")


async def classes(connection: AsyncConnection, before: datetime) -> list[RetentionClass]:
    """Each class that has a shelf, with what was recorded before `before`, by days."""
    names = [row.relname for row in await connection.execute(_SHELVES)]
    counts = await _counts(connection, before)
    found = []
    for name, shelves in _by_class(names).items():
        seq, oldest = await _oldest(connection, shelves, before)
        bodies = None if counts is None else counts.get(name, 0)
        found.append(RetentionClass(name, int(name[1:]), oldest, bodies, seq))
    return sorted(found, key=lambda one: one.days)


def _by_class(tables: Iterable[str]) -> dict[str, list[str]]:
    """The shelves of each class, the oldest first."""
    classes: dict[str, list[str]] = {}
    for match in filter(None, map(_SHELF.fullmatch, sorted(tables))):
        name, year, month = match.groups()
        classes.setdefault(name, []).append(f"{name}-{year}-{month}")
    return classes


async def _oldest(connection: AsyncConnection, shelves: Iterable[str], before: datetime) -> tuple[int | None, str | None]:
    """Number and instant of the first body of the first of these shelves that has one."""
    for shelf in shelves:
        row = (await connection.execute(_OLDEST, {"shelf": shelf, "before": before})).one_or_none()
        if row is not None:
            return row.seq, rfc3339(row.recorded)
    return None, None


async def _counts(connection: AsyncConnection, before: datetime) -> dict[str, int] | None:
    try:
        async with connection.begin_nested():  # what is set in it is set back where it is rolled back
            await connection.execute(_QUICKLY)
            return {row.name: row.bodies for row in await connection.execute(_COUNT, {"before": before})}
    except OperationalError as error:
        if isinstance(error.orig, QueryCanceled):
            return None
        raise
