"""The chapter on the right of access (GDPR Art. 15, CJEU C-579/21): who was consulted when, for what, by whom without a name. Pure."""

from collections.abc import Sequence

from app.reports.content.parts import Chapter, Operators, Section, fill, joined, named, pseudonym, said, shown, stacked, table_section
from app.reports.content.register import Activity, Register, text_of
from app.reports.content.wording import gdpr as wording
from app.reports.content.wording import terms
from app.reports.document import Column, Paragraph, Text
from app.reports.evidence.facts import Consultations, Evidence

BY_PERSON = (
    Column(terms.SUBJECT, 2.2, mono=True),
    Column(terms.TENANT, 1.3),
    Column(terms.MODEL, 1.5),
    Column(terms.PURPOSE, 1.4),
    Column(terms.OUTCOME, 1.9),
    Column(terms.COUNT, 0.9, "right"),
    Column(wording.TIMES, 1.5),
    Column(terms.RETENTION, 1.4),
    Column(wording.CATEGORY, 1.8),
    Column(wording.AUTOMATED, 1.8),
)
EACH = (
    Column(terms.ENTRY, 1.05, "right", mono=True),
    Column(terms.TIME, 1.4),
    Column(terms.SUBJECT, 2.3, mono=True),
    Column(terms.TENANT, 1.5),
    Column(terms.MODEL, 1.7),
    Column(terms.PURPOSE, 1.5),
    Column(wording.RECIPIENT, 1.6),
    Column(terms.OUTCOME, 1.5),
    Column(terms.RETENTION, 1.2),
)


def consultations(evidence: Evidence, register: Register, operators: Operators) -> Chapter:
    """By person, and each for itself."""
    before = [Paragraph(wording.ACCESS_INTRODUCTION), Paragraph(wording.SOURCE), Paragraph(wording.MASKING, "note")]
    return Chapter(wording.ACCESS, [_by_person(evidence, register), _each(evidence, operators)], before)


def _by_person(evidence: Evidence, register: Register) -> Section:
    rows = [_person(each, register) for each in evidence.consultations]
    section = table_section(wording.BY_PERSON, BY_PERSON, rows, wording.NO_CONSULTATIONS)
    if not evidence.more_consultations:
        return section
    more = Paragraph(fill(wording.MORE, count=evidence.more_consultations), "note")
    return Section(section.title, [*section.blocks, more], section.rows, section.total)


def _person(each: Consultations, register: Register) -> Sequence[Text]:
    activity = register.of_model(each.model)
    return (
        shown(each.subject),
        shown(each.tenant),
        shown(each.model),
        terms.SEALED if each.purpose is None else each.purpose,
        named(terms.OUTCOMES, each.outcome),
        str(each.count),
        joined([stacked(each.first), stacked(each.last)], "\n"),
        each.retention,
        _registered(activity, "data"),
        _registered(activity, "automated"),
    )


def _registered(activity: Activity | None, field: str) -> Text:
    """What the register says about the model's activity."""
    return text_of(getattr(activity, field, None)) or wording.NOT_REGISTERED


def _each(evidence: Evidence, operators: Operators) -> Section:
    listed = evidence.of("sensitive.access")
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            pseudonym(said(entry, "subject")),
            shown(entry.body.get("tenant")),
            shown(entry.body.get("model")),
            said(entry, "purpose"),
            operators.shown(entry.body.get("operator")),
            named(terms.OUTCOMES, entry.outcome),
            entry.retention,
        )
        for entry in listed.entries
    ]
    return table_section(wording.EACH, EACH, rows, wording.NO_CONSULTATIONS, listed.total)
