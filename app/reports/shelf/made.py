"""Which nights the log says were made: what replicas agree by, whoever has which folder.

When down: DatabaseDown, and nothing is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import SluiceError
from app.instants import instant, rfc3339
from app.reports.manifest import MANIFEST
from app.reports.nights.missed import Missing, missing_nights
from app.reports.nights.night import Night
from app.transaction import Transactions

LOOKED_BACK = timedelta(days=366)
"""How old a night may be that is made up for: the log keeps the entry that says it was made for little longer."""

MOST_MADE = 5000
"""Of the entries, the newest: more than ten a night in a year."""

_MADE = text(
    "SELECT body FROM (SELECT seq, body FROM audit.body WHERE kind = 'report.made' AND recorded >= :since ORDER BY seq DESC LIMIT :most)"
    " AS newest ORDER BY seq"
)
_SIGNED = text(
    "SELECT count(*) AS times, min(recorded) AS since FROM audit.body"
    """ WHERE kind = 'report.made' AND position('"outcome":"done"'::bytea IN body) > 0"""
)
# The very first may be late: what came before the log had a process waited for it.
_FIRST = text("SELECT min(recorded) FROM (SELECT recorded FROM audit.leaf ORDER BY seq LIMIT 100) AS first")


@dataclass(frozen=True, slots=True)
class Made:
    """One `report.made` entry that ended well."""

    report: str
    begin: str
    end: str
    zone: str
    files: Mapping[str, str]
    """SM3 in hex by name."""

    @property
    def night(self) -> Night | None:
        """Which night it tells of; None where what it says is none."""
        try:
            night = Night.containing(instant(self.begin, "from"), self.zone)
        except (SluiceError, ValueError, OSError, KeyError):
            return None
        return night if self.tells_of(night) else None

    def tells_of(self, night: Night) -> bool:
        """Whether it is of that night."""
        return (self.begin, self.end, self.zone) == (rfc3339(night.begin), rfc3339(night.end), night.zone)


@dataclass(frozen=True, slots=True)
class SignedBefore:
    """What the log says of nights that were made, whenever that was."""

    times: int
    since: datetime


async def signed_before(transactions: Transactions) -> SignedBefore | None:
    """How often reports were made and signed, and since when; None where the log has none. Raises DatabaseDown."""

    async def look(connection: AsyncConnection) -> SignedBefore | None:
        found = (await connection.execute(_SIGNED)).one()
        return SignedBefore(found.times, found.since) if found.times else None

    return await transactions.run(look)


async def begun_at(transactions: Transactions) -> datetime | None:
    """When the first entry of the log was recorded; None of an empty one. Raises DatabaseDown."""

    async def look(connection: AsyncConnection) -> datetime | None:
        return await _begun(connection)

    return await transactions.run(look)


async def made_of(connection: AsyncConnection, night: Night) -> list[Made]:
    """What was made of one night, the first first."""
    return [made for made in await _made(connection, night.end) if made.tells_of(night)]


async def not_made(transactions: Transactions, now: datetime, zone: str, last: Night | None = None) -> Missing:
    """The nights of `zone` that are over and that the log, from its first entry on and LOOKED_BACK at most, does not say were made.

    None after `last`. Raises DatabaseDown.
    """

    async def look(connection: AsyncConnection) -> Missing:
        begun = await _begun(connection)
        if begun is None:
            return missing_nights(None, (), now, zone, last=last)
        begun = max(begun, now - LOOKED_BACK)
        made = await _made(connection, begun)
        return missing_nights(begun, {night for one in made if one.zone == zone and (night := one.night)}, now, zone, last=last)

    return await transactions.run(look)


async def manifests_of(transactions: Transactions, now: datetime) -> dict[str, str | None]:
    """All that was made in the last year: SM3 of the manifest in hex, None where the entry lacks it, by id. Raises DatabaseDown."""
    made = await transactions.run(lambda connection: _made(connection, now - LOOKED_BACK))
    return {one.report: one.files.get(MANIFEST) for one in made}


async def _begun(connection: AsyncConnection) -> datetime | None:
    first: datetime | None = (await connection.execute(_FIRST)).scalar()
    return first


async def _made(connection: AsyncConnection, since: datetime) -> list[Made]:
    rows = await connection.execute(_MADE, {"since": since, "most": MOST_MADE})
    return [made for row in rows if (made := _read(bytes(row.body))) is not None]


def _read(body: bytes) -> Made | None:
    """What a body says; None where it tells of a failure, or was altered to something else."""
    try:
        said: dict[str, Any] = orjson.loads(body)
        if said["outcome"] != "done":
            return None
        files = {file["name"]: file["sm3"] for file in said["files"]}
        return Made(said["report"], said["from"], said["to"], said["zone"], files)
    except (ValueError, KeyError, TypeError):
        return None
