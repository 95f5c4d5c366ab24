"""The question that rules see, in sections, each with a key that stands for its content in the memo."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

SECTIONS = ("tenant", "model", "readings", "subject", "request", "time")
"""All sections, in the order in which group names and memo keys list them."""


def encoded(value: Any) -> bytes:
    """Canonical JSON in no more memory than it needs: the encoder's own bytes keep their buffer of 1 to 4 KiB for life."""
    return bytes(memoryview(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)))


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its value as rules read it (no nulls: missing is absent) and its canonical bytes as memo key."""

    value: Mapping[str, Any]
    key: bytes

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Section":
        """A section with its key computed; do it once per tenant version, model, snapshot or subject and keep it."""
        return cls(value, encoded(value))


EMPTY = Section.of({})


@dataclass(frozen=True, slots=True)
class Question:
    """What one caller asks: the sections by name."""

    tenant: Section = EMPTY
    model: Section = EMPTY
    readings: Section = EMPTY
    subject: Section = EMPTY
    request: Section = EMPTY
    time: Section = EMPTY
