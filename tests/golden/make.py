"""A golden night: the same night of a log, made into the same files before they are signed, byte by byte.

    python -m tests.golden.make

writes tests/golden/night.json anew, with the SM3 of each file. A change of it is a change of what auditors are given: look at the
pages before it is committed.
"""

import hashlib
import io
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pikepdf

from app.instants import rfc3339
from app.reports.clauses.judging import judge_all, tally
from app.reports.clauses.loading import load_clauses
from app.reports.clauses.measures import MEASURES, measure
from app.reports.content.cover import Imprint
from app.reports.content.csv_files import EntriesCsv, write_decisions
from app.reports.content.gdpr import gdpr
from app.reports.content.mlps import mlps
from app.reports.content.register import load_register
from app.reports.document import Document
from app.reports.evidence.facts import Evidence
from app.reports.layout.font import FETCHED, Font
from app.reports.layout.pdf import render
from app.reports.making.folder import counts_of
from app.reports.manifest import DECISIONS, ENTRIES, GDPR, MLPS
from tests.fixtures.night import MADE, NightLog, eventful

FILE = Path(__file__).with_name("night.json")
NOTE = "sluice/golden\n30\nthe checkpoint of a log that is signed anew in each run\n"
ROOT, REPORT_ROOT = "11" * 32, "22" * 32
"""Fingerprints of keys that are made anew in each run."""


def golden(font: Font) -> dict[str, object]:
    """What night.json holds: digests, counts and verdicts, and the digest of the font that the PDFs are set in."""
    evidence, tables = _evidence()
    documents, verdicts = _documents(evidence, font)
    files = {name: _unpacked(render(document, font).pdf) for name, document in documents.items()} | dict(tables)
    return {
        "font": font.sha256,
        "documents": {name: _sm3(repr(document).encode()) for name, document in documents.items()},
        "files": {name: _sm3(content) for name, content in sorted(files.items())},
        "counts": counts_of(evidence),
        "verdicts": verdicts,
    }


def _unpacked(pdf: bytes) -> bytes:
    """The file with its streams as they were before they were compressed: machines have several libraries for that."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        opened.save(out, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.generalized, deterministic_id=True)
    return out.getvalue()


def _evidence() -> tuple[Evidence, Mapping[str, bytes]]:
    """Of the eventful night, with what differs between two runs replaced; and its tables."""
    entries, decisions = io.BytesIO(), io.BytesIO()
    evidence = NightLog.of(*eventful()).evidence(each=EntriesCsv(entries).entry)
    integrity = replace(evidence.integrity, note=NOTE, root=ROOT)
    evidence = replace(evidence, integrity=integrity)
    write_decisions(decisions, evidence)
    return evidence, {ENTRIES: entries.getvalue(), DECISIONS: decisions.getvalue()}


def _documents(evidence: Evidence, font: Font) -> tuple[dict[str, Document], dict[str, dict[str, int]]]:
    clauses, measures = load_clauses(MEASURES), measure(evidence)
    register = load_register()
    imprint = Imprint(
        report=f"{evidence.night.name}-1",
        made=rfc3339(MADE),
        made_by="cli:maker",
        root=REPORT_ROOT,
        organization="Example Ltd",
        system="Example",
        versions={"sluice": "0", "policy": "r1", "clauses": clauses.sm3, "register": register.sm3, "font": font.title},
    )
    judged = {"mlps": judge_all(clauses.mlps, measures), "gdpr": judge_all(clauses.gdpr, measures)}
    documents = {MLPS: mlps(evidence, judged["mlps"], imprint), GDPR: gdpr(evidence, judged["gdpr"], register, imprint)}
    return documents, {name: tally(each) for name, each in judged.items()}


def _sm3(content: bytes) -> str:
    return hashlib.new("sm3", content).hexdigest()


def main() -> None:
    """Write the file anew."""
    FILE.write_bytes(orjson.dumps(golden(Font(FETCHED)), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.write(f"{FILE}: written; look at the pages before it is committed\n")


if __name__ == "__main__":
    main()
