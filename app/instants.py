"""Instants as text: RFC 3339, read with any offset but never without one, written in one spelling. Periods between two of them."""

import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from app.errors import BadRequest

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def instant(text: str, field: str) -> datetime:
    """`text` as an instant in UTC; what is finer than a microsecond is cut off. Raises BadRequest naming `field`, of an option with its dashes."""
    try:
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # the form is right, but no calendar has that day or that time
    hint = "Write the instant as YYYY-MM-DDTHH:MM:SSZ, such as 2026-01-31T00:00:00Z, or with an offset such as +08:00"
    in_url = "" if field.startswith("--") else "; in a URL + is %2B"
    raise BadRequest(f"{field}: not an instant of RFC 3339", hint=f"{hint}{in_url}.", field=field)


def rfc3339(instant: datetime) -> str:
    """`2026-01-02T03:04:05.000006Z`: UTC, always with microseconds, so that spelling never differs for equal instants.

    Raises ValueError for a time without a zone, which is another instant on every machine.
    """
    if instant.tzinfo is None:
        raise ValueError(f"{instant}: a time without a zone")
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@dataclass(frozen=True, slots=True)
class Period:
    """From an instant on, which is included, to another, which is not; None leaves that side open. Raises BadRequest for the wrong order."""

    begin: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        if self.begin is not None and self.end is not None and self.begin >= self.end:
            raise BadRequest("to: must be later than from, which is included while to is not", field="to")

    @classmethod
    def parse(cls, begin: str | None, end: str | None, *, prefix: str = "") -> "Period":
        """The period that the parameters from and to mean, `prefix` before their names. Raises BadRequest."""
        return cls(
            None if begin is None else instant(begin, f"{prefix}from"),
            None if end is None else instant(end, f"{prefix}to"),
        )

    @property
    def bounds(self) -> dict[str, datetime]:
        """Those that are given, by the names they have here."""
        return {field.name: at for field in fields(self) if (at := getattr(self, field.name)) is not None}

    @property
    def as_query(self) -> dict[str, str]:
        """The same as parameters, in one spelling."""
        names = {"begin": "from", "end": "to"}
        return {names[name]: rfc3339(at) for name, at in self.bounds.items()}


ALWAYS = Period()
"""Open on both sides."""
