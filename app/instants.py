"""Instants as callers write them: RFC 3339, always with an offset, so that nobody's local time is guessed."""

import re
from datetime import UTC, datetime

from app.errors import BadRequest

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def instant(text: str, field: str) -> datetime:
    """`text` as an instant in UTC; what is finer than a microsecond is cut off. Raises BadRequest naming `field`."""
    try:
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # the form is right, but no calendar has that day or that time
    raise BadRequest(
        f"{field}: not an instant of RFC 3339",
        hint="Write 2026-01-31T00:00:00Z, or an offset such as +08:00; in a URL + is %2B.",
        field=field,
    )
