"""Log entries: one envelope, one canonical form. The builders of each subject are in app/audit/events, all kinds in kinds.py.

The bytes made here are what is hashed and signed later, so they are made once, stored as bytes, and never serialised again.
What could not be stored is refused here, before anything queues up behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from uuid_utils.compat import uuid7

from app.audit.records import kinds
from app.errors import BadRequest
from app.ids import plain_text
from app.instants import rfc3339

ENVELOPE_VERSION = 1
MAX_INTEGER = 2**53 - 1  # beyond it JSON readers disagree about the last digit
MAX_BODY_BYTES = 1024 * 1024  # what the intake takes; the largest quota with both its states is a tenth of it
DEFAULT_RETENTION_DAYS = 400  # more than the six months that Chinese law asks of logs, with a year's comparison
LEAST_RETENTION_DAYS, MOST_RETENTION_DAYS = 100, 9999  # what the names of shelves have room for

SERVICE = "sluice"
"""The operator of what Sluice does by itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One log entry. `body` is the canonical envelope; the other fields repeat what the database must see of it."""

    id: UUID
    kind: str
    retention: str
    """Retention class: `d` and the days, such as d365."""
    recorded: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class Sealed:
    """Texts about a person, encrypted for one entry (app/audit/people/subject_keys.py) and bound to its id."""

    entry_id: UUID = field(default_factory=uuid7)
    texts: Mapping[str, str] = field(default_factory=dict)
    """By the member that each would stand in."""


def retention_class(days: int | None) -> str:
    """The class that keeps an entry for `days` days; the default where no policy names any. Raises ValueError for no such class."""
    days = DEFAULT_RETENTION_DAYS if days is None else days
    if not LEAST_RETENTION_DAYS <= days <= MOST_RETENTION_DAYS:
        raise ValueError(f"entries are kept from {LEAST_RETENTION_DAYS} to {MOST_RETENTION_DAYS} days, not {days}")
    return f"d{days}"


def canonical(body: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """The one byte form of `body`: RFC 8785 for what the schema allows, which is text, booleans, null, integers, lists, objects.

    Decimals become text in plain notation. Raises ValueError naming the path of a float, an integer beyond 2^53-1, U+0000,
    a lone surrogate, a key that is not ASCII text, or another type: callers check input at their edge, so that is our fault.
    """
    # Under this schema sorting by bytes and RFC 8785's sorting by UTF-16 units agree, and so do the escapes of strings.
    return orjson.dumps(_plain(body, "$"), option=orjson.OPT_SORT_KEYS)


def decimal_text(number: Decimal) -> str:
    """`number` in plain notation without trailing zeros: 0.8, 50, 1000000."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain(value: Any, path: str) -> Any:
    match value:
        case bool() | None:
            return value
        case str():
            return _text(value, path)
        case int():
            if abs(value) > MAX_INTEGER:
                raise ValueError(f"{path}: integer beyond 2^53-1; record it as text")
            return value
        case Decimal() if value.is_finite():
            return decimal_text(value)
        case Mapping():
            return {_key(key, path): _plain(item, f"{path}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    raise ValueError(f"{path}: {type(value).__name__} has no canonical form; record numbers as integers or decimals")


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str) or not key.isascii() or "\x00" in key:
        raise ValueError(f"{path}: key {key!r} is not ASCII text; record names chosen by users as values")
    return key


def _text(value: str, path: str) -> str:
    try:
        return plain_text(value, path, most_chars=len(value))
    except BadRequest as error:
        raise ValueError(error.message) from None


def make_entry(
    kind: str,
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    outcome: str,
    details: Mapping[str, Any],
    retention_days: int | None = None,
    sealed: Sealed | None = None,
) -> Entry:
    """An entry of `kind` with its envelope in canonical form. Details that are None are left out: missing is absent.

    Raises ValueError where the table of kinds, the canonical form or the intake would not have it: that is the writer's fault.
    """
    sealed = sealed or Sealed()
    members = {name: value for name, value in details.items() if value is not None}
    if sealed.texts:
        members["sealed"] = sealed.texts
    kinds.check(kind, outcome, members)
    envelope = {
        "v": ENVELOPE_VERSION,
        "id": str(sealed.entry_id),
        "kind": kind,
        "recorded": rfc3339(recorded),
        "operator": operator,
        "tenant": tenant,
        "outcome": outcome,
    }
    body = canonical(members | envelope)
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"{kind}: {len(body)} bytes, more than the {MAX_BODY_BYTES} of an entry")
    return Entry(sealed.entry_id, kind, retention_class(retention_days), recorded, body)
