"""The chapters on the records of processing (GDPR Art. 30) and on impact assessments (PIPL Art. 55, 56), as the register has them. Pure."""

from collections.abc import Sequence
from datetime import date

from app.reports.content.parts import Chapter, Section, fill, joined, named, table_section
from app.reports.content.register import Activity, Assessment, Party, Register, Said, text_of
from app.reports.content.wording import gdpr as wording
from app.reports.content.wording import terms
from app.reports.document import Block, Column, Facts, Heading, Paragraph, Text, Words

YEARS_KEPT = 3
"""PIPL Art. 56."""
ASSESSMENTS = (
    Column(wording.ACTIVITY, 1.8),
    Column(wording.PURPOSES, 2.5),
    Column(wording.MODELS, 1.8),
    Column(wording.WHY, 2),
    Column(wording.DONE, 2),
    Column(wording.KEPT, 1.6),
)


def records(register: Register) -> Chapter:
    """Who is responsible, and each activity: those of a controller, then those of a processor."""
    mine = [each for each in register.activities if each.role == "controller"]
    others = [each for each in register.activities if each.role == "processor"]
    before: list[Block] = [] if register.controller.name else [Paragraph(wording.NOBODY_NAMED, "warning")]
    return Chapter(
        wording.REGISTER,
        [
            Section(wording.REGISTER_FACTS, [Facts(_responsible(register))]),
            _activities(wording.AS_CONTROLLER, mine, wording.NO_CONTROLLER),
            _activities(wording.AS_PROCESSOR, others, wording.NO_PROCESSOR),
        ],
        before,
    )


def assessments(register: Register) -> Chapter:
    """Of each activity why it is to be assessed, and whether it was."""
    rows: list[Sequence[Text]] = [
        (
            joined([_open(each.name), each.id], "\n"),
            _open(each.purposes),
            ", ".join(each.models) or terms.DASH,
            joined([named(wording.TRIGGERS, why) for why in each.pipl]) if each.pipl else wording.NO_TRIGGER,
            joined([each.assessment.done, each.assessment.report], "\n") if each.assessment else wording.NOT_DONE,
            _kept(each.assessment),
        )
        for each in register.activities
    ]
    section = table_section(wording.ASSESSMENTS, ASSESSMENTS, rows, wording.NO_ASSESSMENTS)
    return Chapter(wording.ASSESSMENTS, [section], [Paragraph(wording.ASSESSMENTS_NOTE)])


def _responsible(register: Register) -> list[tuple[Text, Text]]:
    joint = [_party(party) for party in register.joint_controllers]
    return [
        (wording.VERSION, register.version),
        (wording.CHANGED, register.changed),
        (wording.FINGERPRINT, register.sm3),
        (wording.CONTROLLER, _party(register.controller)),
        (wording.JOINT, joined(joint, "\n") if joint else terms.DASH),
        (wording.REPRESENTATIVE, _party(register.representative)),
        (wording.OFFICER, _party(register.protection_officer)),
    ]


def _party(party: Party) -> Text:
    return joined([text for text in (text_of(party.name), party.contact) if text]) or terms.NOT_NAMED


def _activities(title: Words, activities: Sequence[Activity], none: Words) -> Section:
    blocks: list[Block] = []
    for each in activities:
        blocks += [Heading(_open(each.name), 3), Facts(_as_controller(each) if each.role == "controller" else _as_processor(each))]
    return Section(title, blocks or [Paragraph(none)], len(activities), len(activities))


def _as_controller(each: Activity) -> list[tuple[Text, Text]]:
    return [
        (wording.ACTIVITY, joined([each.id, each.since or terms.DASH], " / ")),
        (wording.PURPOSES, _open(each.purposes)),
        (wording.PEOPLE_AND_DATA, joined([_open(each.people), _open(each.data)], " / ")),
        (wording.RECIPIENTS, _open(each.recipients)),
        (wording.TRANSFERS, _open(each.transfers)),
        (wording.ERASE, _open(each.retention)),
        (wording.SECURITY, _open(each.security)),
        (wording.MODELS, ", ".join(each.models) or terms.DASH),
        (wording.AUTOMATED, _open(each.automated)),
    ]


def _as_processor(each: Activity) -> list[tuple[Text, Text]]:
    return [
        (wording.ACTIVITY, joined([each.id, each.since or terms.DASH], " / ")),
        (wording.ON_BEHALF, _open(each.on_behalf_of)),
        (wording.PURPOSES_P, _open(each.purposes)),
        (wording.TRANSFERS_P, _open(each.transfers)),
        (wording.SECURITY_P, _open(each.security)),
        (wording.MODELS, ", ".join(each.models) or terms.DASH),
    ]


def _open(said: Said | None) -> Text:
    """What the register says, or that it leaves this open."""
    return text_of(said) or terms.NOT_NAMED


def _kept(assessment: Assessment | None) -> Text:
    if assessment is None:
        return terms.DASH
    done, until = date.fromisoformat(assessment.done), date.fromisoformat(assessment.kept_until)
    enough = (until.year, until.month, until.day) >= (done.year + YEARS_KEPT, done.month, done.day)
    return assessment.kept_until if enough else fill(wording.TOO_SHORT, until=assessment.kept_until)
