"""The report for one person as JSON and CSV, written entry by entry, so that memory does not grow with their number.

JSON is one object: what stands before `entries`, these one a line, and what is only known at the end.
"""

import base64
from typing import IO, Any

import orjson

from app.instants import rfc3339
from app.reports.content.csv_files import CsvFile
from app.reports.subjects import wording
from app.reports.subjects.answer import Answer, Summary
from app.reports.subjects.pages import key_words
from app.reports.subjects.view import Shown

FORM = "sluice-subject-report 1"
CSV_COLUMNS = ("number", "recorded", "kind", "outcome", "by", "model", "purpose", "kept_until", "details")
_SORTED = orjson.OPT_SORT_KEYS


class JsonFile:
    """The report as JSON."""

    def __init__(self, stream: IO[bytes], answer: Answer) -> None:
        self._stream = stream
        self._answer = answer
        self._separator = b"\n"
        stream.write(orjson.dumps(_head(answer))[:-1] + b',"entries":[')

    def add(self, entry: Shown) -> None:
        """One more entry."""
        self._stream.write(self._separator + orjson.dumps(entry.document))
        self._separator = b",\n"

    def end(self, summary: Summary) -> None:
        """What is known now that all entries are there."""
        self._stream.write(b"\n]," + orjson.dumps(_tail(self._answer, summary), option=_SORTED)[1:] + b"\n")


class EntriesCsv(CsvFile):
    """The entries as CSV, without their proofs."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream, CSV_COLUMNS)

    def entry(self, entry: Shown) -> None:
        """One more entry; what has no column of its own stands in `details` as JSON."""
        document = entry.document
        said = {**document, **entry.texts.opened}
        details = {name: value for name, value in document.items() if name not in (*CSV_COLUMNS, "meaning", "proof")}
        cells = [said.get(name) for name in CSV_COLUMNS[:-1]]
        self.add([*cells, orjson.dumps(details, option=_SORTED).decode()])


def _head(answer: Answer) -> dict[str, Any]:
    person, request, checkpoint = answer.person, answer.request, answer.closing.checkpoint
    return {
        "form": FORM,
        "answer": answer.id,
        "made": rfc3339(answer.made),
        "responsible": answer.by.organization or None,
        "system": answer.by.system or None,
        "person": {"role": person.role, "tenant": person.tenant, "id": person.name, "pseudonym": answer.pseudonym},
        "legal_basis": [answer.legal_basis, "PIPL Art. 45"],
        "request": None if request is None else {"id": request.id, "article": request.article, "received": request.asked},
        "told": {name: said.en for name, _, said in wording.POINTS} | {"scope": wording.SCOPE[person.role].en},
        "log": {
            "origin": checkpoint.tree_head.origin,
            "size": checkpoint.size,
            "root": checkpoint.tree_head.root.hex(),
            "signed": rfc3339(checkpoint.signed_at),
            "note": checkpoint.note,
            "certificates": [base64.b64encode(der).decode() for der in answer.closing.certificates],
        },
    }


def _tail(answer: Answer, summary: Summary) -> dict[str, Any]:
    return {
        "count": summary.entries,
        "first": summary.first,
        "last": summary.last,
        "kinds": [{"kind": kind, "outcome": outcome, "count": count} for (kind, outcome), count in sorted(summary.kinds.items())],
        "retention": dict(summary.retention),
        "texts": {name: getattr(summary, name) for name in ("opened", "erased", "unreadable", "withheld")},
        "outside_the_log": {
            "subject_key": {
                "state": answer.key_state(summary),
                "created": rfc3339(answer.key.created) if answer.key else None,
                "erased": summary.erased_at,
                "meaning": key_words(answer, summary).en,
            },
            "registry": dict(answer.held),
            "leases": wording.LEASES.en,
        },
    }
