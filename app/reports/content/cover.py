"""What a report says of itself, and its first page: what it is about, what its signature proves, how to check it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.instants import rfc3339
from app.reports.clauses.clause import VERDICTS, Judged
from app.reports.clauses.judging import tally
from app.reports.content.parts import Chapter, Operators, fill, joined, shown
from app.reports.content.wording import cover as wording
from app.reports.content.wording import terms
from app.reports.document import Block, Column, Document, Facts, Lines, Paragraph, Table, Text, Words, both
from app.reports.evidence.accesses import ACCESS, ASKED
from app.reports.evidence.facts import Evidence

PRODUCER = "Sluice"
DAY_HOURS = 24
TABLES = (Column(wording.TABLES_TITLE, 6), Column(wording.ROWS_HERE, 1.5, "right"), Column(wording.ROWS_ALL, 1.5, "right"))


@dataclass(frozen=True, slots=True)
class Imprint:
    """Beside the evidence, all that differs between two makings of the same night."""

    report: str
    """Its id: Night.name, a dash and a number."""
    made: str
    """RFC 3339."""
    made_by: str
    """As the log names operators: `cli:` and a user, or `sluice`."""
    root: str
    """SM3 fingerprint of the root certificate of the report keys, in hex: what a reader compares."""
    organization: str = ""
    """Empty: nobody named it, and the cover says so."""
    system: str = ""
    pades: bool = False
    """Whether the PDFs have an ECDSA signature for ordinary readers, too."""
    timestamp: bool = False
    """Whether an RFC 3161 token lies beside."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """By what: `sluice`, `policy` (revisions in force), `clauses` and `register` (SM3, hex), `font`; printed in this order, then others."""


def cover(
    evidence: Evidence,
    judged: Sequence[Judged],
    chapters: Sequence[Chapter],
    imprint: Imprint,
    *,
    file: str,
    operators: Operators,
    level: Words | None = None,
) -> list[Block]:
    """The blocks of the first page. `file`: the report's name in its folder; `level`: of protection, where it is one of MLPS."""
    blocks: list[Block] = [Facts([*_about(imprint, level), *_period(evidence), *_made(judged, imprint, operators)])]
    if evidence.night.hours != DAY_HOURS:
        blocks.append(Paragraph(fill(wording.HOURS, hours=f"{evidence.night.hours:g}"), "note"))
    if evidence.entries == 0:
        blocks.append(Paragraph(wording.NOTHING_HAPPENED))
    elif evidence.first == 0:
        blocks.append(Paragraph(wording.LOG_BEGINS, "note"))
    return [*blocks, *_signature(imprint, file), _versions(evidence, imprint), _tables(chapters)]


def document(title: Words, evidence: Evidence, imprint: Imprint, cover: Sequence[Block], chapters: Sequence[Chapter]) -> Document:
    """Chapters as a report."""
    return Document(
        title=title,
        subject=f"{imprint.report} {evidence.night.day.isoformat()} {evidence.night.zone}",
        footer=joined([title.zh, imprint.report]),
        cover=cover,
        blocks=[block for chapter in chapters for block in chapter.blocks()],
        made=imprint.made,
        author=imprint.organization or PRODUCER,
    )


def _about(imprint: Imprint, level: Words | None) -> list[tuple[Text, Text]]:
    who = joined([imprint.organization or terms.NOT_NAMED, imprint.system or terms.NOT_NAMED, *([level] if level else [])])
    return [(wording.SYSTEM, who), (wording.REPORT, imprint.report)]


def _period(evidence: Evidence) -> list[tuple[Text, Text]]:
    night, report = evidence.night, evidence.integrity.report
    total = sum(count.count for count in evidence.decisions)
    allowed = sum(count.count for count in evidence.decisions if count.outcome == "allow")
    accesses = {count.outcome: count.count for count in evidence.kinds if count.kind == ACCESS}
    return [
        (wording.DAY, f"{night.day.isoformat()} {night.zone}\n[{rfc3339(night.begin)}, {rfc3339(night.end)})"),
        (wording.ENTRIES, f"{evidence.entries} / [{evidence.first}, {evidence.end})"),
        (wording.DECISIONS, f"{allowed} / {total - allowed}"),
        (wording.ACCESSES, f"{sum(accesses.get(outcome, 0) for outcome in ASKED)} / {accesses.get('refused', 0)}"),
        (wording.CHECKPOINT, f"{report.verdict}\n{shown(report.size)}, {shown(report.root)}"),
    ]


def _made(judged: Sequence[Judged], imprint: Imprint, operators: Operators) -> list[tuple[Text, Text]]:
    counts = tally(judged)
    verdicts = joined([joined([VERDICTS[each], str(counts[each])], " ") for each in VERDICTS])
    return [
        (wording.VERDICTS_TITLE, verdicts),
        (wording.MADE, joined([imprint.made, operators.shown(imprint.made_by)], " / ")),
        (wording.ROOT, imprint.root),
    ]


def _versions(evidence: Evidence, imprint: Imprint) -> Facts:
    order = [*wording.VERSIONS, *sorted(imprint.versions.keys() - wording.VERSIONS.keys())]
    versions = [(wording.VERSIONS.get(name, name), imprint.versions[name]) for name in order if name in imprint.versions]
    return Facts([(wording.LOG_ROOT, evidence.integrity.root), *versions])


def _signature(imprint: Imprint, file: str) -> list[Block]:
    time = wording.TIME_BY_TOKEN if imprint.timestamp else wording.TIME_BY_CLOCK
    also = [wording.ALSO_PADES] if imprint.pades else []
    return [
        Paragraph(joined([wording.SM2, time, *also], " "), "warning"),
        Paragraph(wording.HOW_TO_CHECK),
        Lines([command.replace("{file}", file) for command in wording.COMMANDS]),
        Paragraph(wording.COMPARE, "note"),
        Paragraph(wording.PROVES),
        Paragraph(wording.PROVES_NOT),
        Paragraph(wording.NIGHT_HAS, "note"),
    ]


def _tables(chapters: Sequence[Chapter]) -> Table:
    """How many rows each table of the report has: counted on the tables themselves."""
    sections = [section for chapter in chapters for section in chapter.sections if section.rows is not None]
    return Table(TABLES, [(both(section.title), str(section.rows), str(section.total)) for section in sections])
