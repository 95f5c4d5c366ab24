"""The chapters on the log and on the controls that are not in place. Pure.

The verifier's own words, the checkpoint, the entries that the log keeps about itself; and plainly what is not there, or not known.
"""

from collections.abc import Sequence

from app.reports.content.cover import Imprint
from app.reports.content.parts import (
    Chapter,
    Operators,
    Section,
    fill,
    joined,
    moment,
    named,
    numbers,
    said,
    shown,
    stacked,
    table_section,
    together,
)
from app.reports.content.wording import integrity as wording
from app.reports.content.wording import sections, terms
from app.reports.document import Block, Column, Lines, Paragraph, Table, Text
from app.reports.evidence.facts import Evidence

_ENTRY, _TIME, _STACKED = Column(terms.ENTRY, 1.1, "right", mono=True), Column(terms.TIME, 2.6), Column(terms.TIME, 1.7)
GAPS = (
    _ENTRY,
    Column(wording.FROM, 2.6),
    Column(wording.TO, 2.6),
    Column(wording.REASON, 2),
    Column(wording.LOST, 1, "right"),
    Column(wording.REFUSED, 1, "right"),
)
PURGES = (
    _ENTRY,
    _TIME,
    Column(wording.SHELF, 2),
    Column(wording.FIRST, 1, "right"),
    Column(wording.LAST, 1, "right"),
    Column(terms.COUNT, 1, "right"),
)
MALFORMED = (_ENTRY, _TIME, Column(wording.WHY, 4), Column(wording.BYTES, 1, "right"))
KEYS = (
    _ENTRY,
    _STACKED,
    Column(terms.OPERATOR, 2),
    Column(terms.KIND, 1.5),
    Column(wording.USE, 1.5),
    Column(wording.KEY, 3, mono=True),
    Column(terms.DETAILS, 3),
)
RULES = (
    _ENTRY,
    _STACKED,
    Column(terms.KIND, 1.5),
    Column(wording.REVISION, 2, mono=True),
    Column(wording.PREVIOUS, 2, mono=True),
    Column(terms.DETAILS, 3),
)
REPORTS = (
    _ENTRY,
    _STACKED,
    Column(terms.OPERATOR, 2),
    Column(wording.REPORT, 3),
    Column(wording.OF_DAY, 3),
    Column(terms.OUTCOME, 1.6),
    Column(terms.DETAILS, 2),
)
RETENTION = (
    Column(wording.CLASS, 1.5),
    Column(wording.DAYS, 1, "right"),
    Column(wording.OLDEST, 3),
    Column(terms.ENTRY, 1, "right", mono=True),
    Column(wording.HELD, 1.5, "right"),
)

CONTROLS = (Column(sections.CONTROL, 1),)


def integrity(evidence: Evidence, operators: Operators) -> Chapter:
    """What checking the log found, gaps, purges, changes of keys and rules, retention."""
    sections = [
        _output(evidence),
        _note(evidence),
        _gaps(evidence),
        _purges(evidence),
        _malformed(evidence),
        _keys(evidence, operators),
        _rules(evidence),
        _reports(evidence, operators),
        _retention(evidence),
    ]
    return Chapter(wording.TITLE, sections, [Paragraph(wording.INTRODUCTION), *_warnings(evidence), *_limits(evidence)])


def controls(evidence: Evidence, imprint: Imprint) -> Chapter:
    """What the log or the imprint shows to be there is left out; the rest is not there."""
    missing = [
        (sections.NO_PURGE, evidence.of("audit.purge").total == 0),
        (sections.NO_ERASURE, all((each.kind, each.outcome) != ("subject.erasure", "done") for each in evidence.kinds)),
        (sections.NO_ANCHOR, evidence.integrity.anchors == 0),
        (sections.NO_TIMESTAMP, not imprint.timestamp),
        (sections.NO_BACKUP, True),
        (sections.NO_HSM, True),
        (sections.NO_CERTIFIED, True),
        (sections.NO_SECOND_FACTOR, True),
        (sections.NO_REVIEW, True),
    ]
    table = Table(CONTROLS, [(words,) for words, absent in missing if absent])
    return Chapter(sections.CONTROLS, before=[Paragraph(sections.CONTROLS_INTRODUCTION), table])


def _warnings(evidence: Evidence) -> list[Block]:
    found: list[Text] = []
    if not evidence.integrity.whole:
        found.append(wording.NOT_WHOLE)
    if (root_from := evidence.integrity.root_from) != "given":
        found.append(wording.ROOT_PINNED if root_from == "pinned" else wording.ROOT_OF_LOG)
    if evidence.integrity.unproven:
        found.append(fill(wording.UNPROVEN, entries=numbers(evidence.integrity.unproven)))
    if evidence.cut:
        groups = joined([named(wording.GROUPS, group) for group in sorted(evidence.cut)])
        found.append(fill(wording.CUT, groups=groups))
    return [Paragraph(text, "warning") for text in found]


def _limits(evidence: Evidence) -> list[Block]:
    anchors = evidence.integrity.anchors
    found = [fill(wording.ANCHORS, count=anchors) if anchors else wording.NO_ANCHORS]
    if evidence.integrity.joins is None and evidence.first:
        found.append(wording.NOT_JOINED)
    counts = ((wording.PURGED, evidence.purged), (wording.LATE, evidence.late.total), (wording.LATE_DECISIONS, evidence.late_decisions))
    return [Paragraph(text) for text in (*found, *(fill(words, count=count) for words, count in counts if count))]


def _output(evidence: Evidence) -> Section:
    return Section(wording.OUTPUT, [Lines(evidence.integrity.text), Paragraph(wording.REPEAT, "note"), Lines([wording.COMMAND])])


def _note(evidence: Evidence) -> Section:
    note = evidence.integrity.note.splitlines()
    return Section(wording.NOTE, [Lines(note) if note else Paragraph(wording.NO_NOTE)])


def _gaps(evidence: Evidence) -> Section:
    listed = evidence.of("audit.gap")
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            moment(entry.body.get("from")),
            moment(entry.body.get("to")),
            shown(entry.body.get("reason")),
            terms.UNKNOWN if entry.body.get("lost") is None else shown(entry.body["lost"]),
            shown(entry.body.get("refused")),
        )
        for entry in listed.entries
    ]
    return table_section(wording.GAPS, GAPS, rows, wording.NO_GAPS, listed.total)


def _purges(evidence: Evidence) -> Section:
    listed = evidence.of("audit.purge")
    rows = [
        (str(entry.seq), moment(entry.recorded), *(shown(entry.body.get(name)) for name in ("shelf", "first", "last", "count")))
        for entry in listed.entries
    ]
    return table_section(wording.PURGES, PURGES, rows, wording.NO_PURGES, listed.total)


def _malformed(evidence: Evidence) -> Section:
    listed = evidence.of("audit.malformed")
    rows = [
        (str(entry.seq), moment(entry.recorded), shown(entry.body.get("why")), shown(entry.body.get("bytes"))) for entry in listed.entries
    ]
    return table_section(wording.MALFORMED, MALFORMED, rows, wording.NO_MALFORMED, listed.total)


def _keys(evidence: Evidence, operators: Operators) -> Section:
    listed = together(evidence, "key.created", "key.rotated", "key.revoked")
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            operators.shown(entry.body.get("operator")),
            named(terms.KINDS, entry.kind),
            named(wording.USES, shown(entry.body.get("use"))),
            shown(entry.body.get("key")),
            operators.details(entry.body.get("after") or entry.body.get("before")),
        )
        for entry in listed.entries
    ]
    return table_section(wording.KEYS, KEYS, rows, wording.NO_KEYS, listed.total)


def _rules(evidence: Evidence) -> Section:
    listed = together(evidence, "policy.activated", "policy.refused")
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            named(terms.KINDS, entry.kind),
            *(shown(entry.body.get(name)) for name in ("policy_revision", "previous_revision", "problem")),
        )
        for entry in listed.entries
    ]
    return table_section(wording.RULES, RULES, rows, wording.NO_RULES, listed.total)


def _reports(evidence: Evidence, operators: Operators) -> Section:
    listed = evidence.of("report.made")
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            operators.shown(entry.body.get("operator")),
            shown(entry.body.get("report")),
            f"{moment(entry.body.get('from'))}\n{moment(entry.body.get('to'))}",
            named(terms.OUTCOMES, entry.outcome),
            said(entry, "problem"),
        )
        for entry in listed.entries
    ]
    return table_section(wording.REPORTS, REPORTS, rows, wording.NO_REPORTS, listed.total)


def _retention(evidence: Evidence) -> Section:
    rows: list[Sequence[Text]] = [
        (
            each.name,
            str(each.days),
            moment(each.oldest),
            shown(each.seq),
            terms.UNKNOWN if each.entries is None else str(each.entries),
        )
        for each in evidence.retention
    ]
    return table_section(wording.RETENTION, RETENTION, rows, wording.NO_RETENTION)
