"""Pieces that pages are put together from: texts with values in them, sections with a table, how operators are shown. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from app.audit.records.entry import SERVICE
from app.reports.content.wording import terms
from app.reports.document import Block, Column, Heading, Paragraph, Table, Text, Words
from app.reports.evidence.facts import Evidence, Listed, Logged

PSEUDONYM_SHOWN = len("p1:") + 16
"""Version and 64 bits."""
_PSEUDONYM = re.compile(r"p\d:[0-9a-f]{64}")
ID_SHOWN = 12
"""The last digits: the first ones of an id are the time at which it was made, and alike for all of a day."""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading of level 2, and the table among them, if there is one."""

    title: Words
    blocks: Sequence[Block]
    rows: int | None = None
    """How many rows its table has here; None where it is none."""
    total: int | None = None
    """How many there are."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of level 1 and what stands under it."""

    title: Words
    sections: Sequence[Section] = ()
    before: Sequence[Block] = ()
    """Between its heading and the first section."""

    def blocks(self) -> list[Block]:
        """All of it in order; an only section needs no heading of its own."""
        found: list[Block] = [Heading(self.title), *self.before]
        for section in self.sections:
            found += [*([Heading(section.title, 2)] if len(self.sections) > 1 else []), *section.blocks]
        return found


def table_section(
    title: Words, columns: Sequence[Column], rows: Sequence[Sequence[Text]], none: Words, total: int | None = None
) -> Section:
    """A table, or the sentence `none` where it has no row; `total`, where there are more than stand here."""
    total = len(rows) if total is None else total
    if not rows:
        return Section(title, [Paragraph(none)], 0, total)
    return Section(title, [Table(columns, rows, total if total > len(rows) else None)], len(rows), total)


def fill(words: Words, **values: Text | int) -> Words:
    """The words with values in the places of their names. Values are data: nothing in them is read."""
    by_language = [{name: _in(value, language) for name, value in values.items()} for language in ("zh", "en")]
    return Words(words.zh.format_map(by_language[0]), words.en.format_map(by_language[1]))


def joined(texts: Sequence[Text], separator: str = terms.SEPARATOR) -> Text:
    """One text of several; of both languages where one of them is."""
    if not any(isinstance(text, Words) for text in texts):
        return separator.join(str(text) for text in texts)
    return Words(separator.join(_in(text, "zh") for text in texts), separator.join(_in(text, "en") for text in texts))


def _in(value: Text | int, language: str) -> str:
    return str(getattr(value, language)) if isinstance(value, Words) else str(value)


def named(names: Mapping[str, Words], code: str) -> Text:
    """What a code is called; itself where it has no name here."""
    return names.get(code, code)


def shown(value: Any) -> str:
    """A value of an entry as text: text as it is, nothing as a dash, anything else as JSON."""
    if value is None or value == "":
        return terms.DASH
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def moment(at: Any) -> str:
    """An instant to the second, as RFC 3339; its entry has the microseconds."""
    text = shown(at)
    return f"{text[:19]}Z" if _INSTANT.fullmatch(text) else text


def stacked(at: Any) -> str:
    """The same in two lines, for a narrow column: the day, and the time."""
    return moment(at).replace("T", "\n", 1) if _INSTANT.fullmatch(shown(at)) else shown(at)


def pseudonym(text: Text) -> Text:
    """The beginning of a pseudonym, enough to tell people of a day apart; anything else as it is. The CSV has all of it."""
    return f"{text[:PSEUDONYM_SHOWN]}{terms.CUT}" if isinstance(text, str) and _PSEUDONYM.fullmatch(text) else text


def short_id(text: Text) -> Text:
    """The end of an id, enough to find it in another table; anything else as it is. The CSV has all of it."""
    return f"{terms.CUT}{text[-ID_SHOWN:]}" if isinstance(text, str) and _ID.fullmatch(text) else text


def said(entry: Logged, member: str) -> Text:
    """A member of an entry, or that it stands sealed there."""
    sealed = entry.body.get("sealed")
    if entry.body.get(member) is None and isinstance(sealed, Mapping) and member in sealed:
        return terms.SEALED
    return shown(entry.body.get(member))


def numbers(entries: Sequence[int]) -> str:
    """Numbers of entries."""
    return ", ".join(map(str, entries)) or terms.DASH


def together(evidence: Evidence, *kinds: str) -> Listed:
    """The entries of several kinds in the order of the log."""
    lists = [evidence.of(kind) for kind in kinds]
    entries = sorted((entry for listed in lists for entry in listed.entries), key=lambda entry: entry.seq)
    return Listed(entries, sum(listed.total for listed in lists))


class Operators(Protocol):
    """How a report shows who did something."""

    def shown(self, name: Any) -> Text:
        """The operator, as the report may say it."""
        ...

    def details(self, state: Any) -> str:
        """What an entry says of a key, whose name is that of an operator."""
        ...


class Named:
    """Operators by their names."""

    def shown(self, name: Any) -> Text:
        return shown(name)

    def details(self, state: Any) -> str:
        return shown(state)


@dataclass
class Masked:
    """Operators by numbers in the order in which a report comes to them: who works somewhere is not for those to know whose data it is."""

    _numbers: dict[str, int] = field(default_factory=dict)

    def shown(self, name: Any) -> Text:
        text = shown(name)
        return text if text in (SERVICE, terms.DASH) else fill(terms.MASKED, number=self._number(text))

    def details(self, state: Any) -> str:
        if isinstance(state, Mapping) and "name" in state:
            state = {**state, "name": f"#{self._number(shown(state['name']))}"}
        return shown(state)

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)
