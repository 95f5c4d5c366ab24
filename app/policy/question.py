"""The question that rules see, in sections, each with a key that stands for its content in the memo."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.policy.reads import Read


def encoded(value: Any) -> bytes:
    """Canonical JSON in no more memory than it needs: the encoder's own bytes keep their buffer of 1 to 4 KiB for life."""
    return bytes(memoryview(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)))


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its value as rules read it (no nulls: missing is absent) and its canonical bytes as memo key."""

    value: Mapping[str, Any]
    key: bytes
    _parts: dict[tuple[str, ...], "Section"] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What rules read of it where that is not all: made once, and kept as long as the section."""

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Section":
        """A section with its key computed; do it once per tenant version, model, snapshot or subject and keep it."""
        return cls(value, encoded(value))

    def only(self, read: Read) -> "Section":
        """What is read of this section, with a key of its own; the section itself where that is all of it."""
        if not read.fields:
            return self
        part = self._parts.get(read.fields)
        if part is None:
            value = read.of(self.value)
            if len(value) == len(self.value):
                return self
            part = self._parts[read.fields] = Section.of(value)
        return part


EMPTY = Section.of({})


class Asked:
    """A question of any kind: a dataclass whose fields are its sections."""

    __slots__ = ()

    def part(self, read: Read) -> Section:
        """The section that is read, or what is read of it."""
        section: Section = getattr(self, read.section)
        return section.only(read)


@dataclass(frozen=True, slots=True)
class Question(Asked):
    """What one caller asks: the sections by name."""

    tenant: Section = EMPTY
    model: Section = EMPTY
    readings: Section = EMPTY
    subject: Section = EMPTY
    request: Section = EMPTY
    time: Section = EMPTY
