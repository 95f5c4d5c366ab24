"""What of the intake enters the log as it is, and what stands there instead of the rest. Pure.

A writer that is broken or in wrong hands can hand over any bytes. They must neither stop the queue nor vanish: an entry of kind
`audit.malformed` holds them, and says what is wrong.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.audit.format.leaf import sm3
from app.audit.records.entry import DEFAULT_RETENTION_DAYS, SERVICE, Entry, canonical, make_entry
from app.instants import rfc3339

MALFORMED = "audit.malformed"
MAX_KEPT_BYTES = 64 * 1024
"""Of bytes that are no entry; the largest of ours is far below, and more would only fill the log."""
MAX_KIND_CHARS = 64
MAX_FILTER_CHARS = 512
"""An index takes no value above 2 700 bytes; ids that pass our edge have 128 characters."""


class Malformed(ValueError):
    """The row is not what a writer of ours hands over; the text says how."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the intake. `recorded` is None where it names no year from 2000 to 2999."""

    id: UUID
    retention: str
    recorded: datetime | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Admitted:
    """An entry with the members of its body that readers filter by."""

    entry: Entry
    tenant: str | None
    model: str | None
    subject: str | None
    decision: str | None


def admit(row: Row, *, latest: datetime | None = None) -> Admitted:
    """`row` as an entry. Raises Malformed where its body is not canonical or contradicts the row, or where it is recorded after `latest`."""
    envelope = _envelope(row.body)
    kind = envelope.get("kind")
    version = envelope.get("v")
    if type(version) is not int or version < 1:
        raise Malformed("it has no version")
    if not isinstance(kind, str) or not 0 < len(kind) <= MAX_KIND_CHARS:
        raise Malformed("it has no kind")
    if envelope.get("id") != str(row.id):
        raise Malformed("its id is not the row's")
    if row.recorded is None or envelope.get("recorded") != rfc3339(row.recorded):
        raise Malformed("its instant is not the row's")
    if latest is not None and row.recorded > latest:
        raise Malformed("its instant lies in the future, beyond the life of the key that signs the log")
    return _with_filters(Entry(row.id, kind, row.retention, row.recorded, row.body), envelope)


def own(entry: Entry) -> Admitted:
    """An entry that was made in this process."""
    return _with_filters(entry, orjson.loads(entry.body))


def malformed(row: Row, why: str, *, recorded: datetime) -> Admitted:
    """The entry that stands in the log for a row that is none: all of its bytes, or the first 64 KiB, and SM3 of all."""
    details = {
        "row": str(row.id),
        "why": why,
        "retention": row.retention,
        "bytes": len(row.body),
        "kept_bytes": min(len(row.body), MAX_KEPT_BYTES),
        "base64": base64.b64encode(row.body[:MAX_KEPT_BYTES]).decode(),
        "sm3": sm3(row.body).hex(),
    }
    entry = make_entry(
        MALFORMED,
        recorded=recorded,
        operator=SERVICE,
        tenant=None,
        outcome="malformed",
        details=details,
        retention_days=max(DEFAULT_RETENTION_DAYS, int(row.retention.removeprefix("d"))),  # a forged class must not shorten it
    )
    return own(entry)


def _envelope(body: bytes) -> Mapping[str, Any]:
    try:
        envelope: dict[str, Any] = orjson.loads(body)
        same = isinstance(envelope, dict) and canonical(envelope) == body
    except (ValueError, TypeError, RecursionError):  # not JSON, or numbers, text or depth without a canonical form
        same = False
    if not same:
        raise Malformed("its bytes are not canonical JSON of an object")
    return envelope


def _with_filters(entry: Entry, envelope: Mapping[str, Any]) -> Admitted:
    return Admitted(entry, *(_filter(envelope.get(name)) for name in ("tenant", "model", "subject", "decision_id")))


def _filter(value: Any) -> str | None:
    return value[:MAX_FILTER_CHARS] if isinstance(value, str) else None
