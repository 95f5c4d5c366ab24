"""Instants as text: RFC 3339, read with any offset but never without one, written in one spelling."""

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


def rfc3339(instant: datetime) -> str:
    """`2026-01-02T03:04:05.000006Z`: UTC, always with microseconds, so that spelling never differs for equal instants.

    Raises ValueError for a time without a zone, which is another instant on every machine.
    """
    if instant.tzinfo is None:
        raise ValueError(f"{instant}: a time without a zone")
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
