"""The CSV files of a night: RFC 4180 with CRLF and one header, UTF-8 with BOM, times in RFC 3339 and UTC.

A spreadsheet runs what begins like a formula, and names in a log are chosen by strangers: such a cell gets a leading apostrophe.
"""

import csv
from collections.abc import Sequence
from typing import IO, Any

import orjson

from app.instants import rfc3339
from app.reports.evidence.facts import Evidence, Logged

BOM = b"\xef\xbb\xbf"
DECISION_COLUMNS = ("hour", "tenant", "model", "outcome", "count")
ENTRY_COLUMNS = (
    "seq",
    "recorded",
    "kind",
    "outcome",
    "operator",
    "tenant",
    "model",
    "subject",
    "purpose",
    "reasons",
    "retention",
    "id",
    "details",
)
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
_OWN_COLUMN = frozenset({"v", *ENTRY_COLUMNS})


class CsvFile:
    """Rows, one after the other, into a stream of bytes; nothing is kept of them."""

    def __init__(self, stream: IO[bytes], columns: Sequence[str]) -> None:
        self._stream = stream
        self._writer = csv.writer(self, lineterminator="\r\n")
        self.rows = 0
        """Written so far, without the header."""
        stream.write(BOM)
        self._writer.writerow(columns)

    def add(self, cells: Sequence[str | int | None]) -> None:
        """One row; None is an empty cell."""
        self._writer.writerow([guarded(cell) if isinstance(cell, str) else cell for cell in cells])
        self.rows += 1

    def write(self, row: str) -> None:
        """One finished row, for the writer of the standard library."""
        self._stream.write(row.encode())


class EntriesCsv(CsvFile):
    """entries.csv: each entry of the day, in the order they are handed in."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream, ENTRY_COLUMNS)

    def entry(self, entry: Logged) -> None:
        """One entry; members without a column of their own stand in `details` as JSON."""
        body = entry.body
        details = {name: value for name, value in body.items() if name not in _OWN_COLUMN}
        self.add(
            (
                entry.seq,
                entry.recorded,
                entry.kind,
                entry.outcome,
                *(_text(body.get(name)) for name in ("operator", "tenant", "model", "subject", "purpose")),
                reasons_text(body.get("reasons")),
                entry.retention,
                _text(body.get("id")),
                orjson.dumps(details, option=orjson.OPT_SORT_KEYS).decode() if details else None,
            )
        )


def write_decisions(stream: IO[bytes], evidence: Evidence) -> int:
    """decisions.csv: how many decisions there were of each hour, tenant, model and outcome. Returns the number of rows."""
    file = CsvFile(stream, DECISION_COLUMNS)
    for count in evidence.decisions:
        file.add((rfc3339(count.hour), count.tenant, count.model, count.outcome, count.count))
    return file.rows


def guarded(text: str) -> str:
    """`text`, with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def reasons_text(reasons: Any) -> str | None:
    """Reasons of an entry in one line: their codes, each with its rule in brackets."""
    if not isinstance(reasons, list):
        return None if reasons is None else _text(reasons)
    return "; ".join(_reason(each) for each in reasons) or None


def _reason(reason: Any) -> str:
    if not isinstance(reason, dict):
        return str(_text(reason))
    rule = reason.get("rule")
    return f"{reason.get('code')} ({rule})" if rule else str(reason.get("code"))


def _text(value: Any) -> str | None:
    """Text as it is, None as an empty cell, anything else as JSON: nothing that a log says may stop its report."""
    return value if isinstance(value, str) or value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
