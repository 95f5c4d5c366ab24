"""The chapters on what people asked for, and on breaches with their clock of 72 hours (GDPR Art. 12(3), 17, 33). Pure.

Clocks are read as the day ended, so that the same night says the same whenever it is made.
"""

import math
from collections.abc import Sequence
from datetime import datetime

from app.errors import BadRequest
from app.instants import instant
from app.reports.content.csv_files import reasons_text
from app.reports.content.parts import (
    Chapter,
    Operators,
    Section,
    fill,
    joined,
    moment,
    named,
    numbers,
    pseudonym,
    said,
    shown,
    stacked,
    table_section,
    together,
)
from app.reports.content.wording import gdpr as wording
from app.reports.content.wording import terms
from app.reports.document import Column, Text, Words
from app.reports.evidence.facts import Breach, Evidence, Logged, SubjectRequest

HOUR, DAY = 3600, 86_400
REQUESTS = (
    Column(wording.REQUEST, 1.8, mono=True),
    Column(terms.TENANT, 1.4),
    Column(terms.SUBJECT, 1.8, mono=True),
    Column(wording.ARTICLE, 1.3),
    Column(wording.ASKED, 1.4),
    Column(wording.DUE, 1.4),
    Column(terms.STATE, 1.4, strong=True),
    Column(wording.ANSWER, 2),
    Column(terms.ENTRIES, 1),
)
HANDLING = (
    Column(terms.ENTRY, 1, "right", mono=True),
    Column(terms.TIME, 1.4),
    Column(terms.KIND, 1.5),
    Column(terms.OPERATOR, 1.5),
    Column(terms.SUBJECT, 2.2, mono=True),
    Column(wording.REQUEST, 1.8, mono=True),
    Column(terms.OUTCOME, 1.4),
    Column(wording.GROUND, 2),
)
BREACHES = (
    Column(wording.BREACH, 1.8, mono=True),
    Column(terms.TENANT, 1.4),
    Column(wording.KNOWN, 1.4),
    Column(wording.DUE, 1.4),
    Column(wording.CLOCK, 1.8, strong=True),
    Column(wording.PEOPLE, 0.9, "right"),
    Column(wording.NOTIFIED, 2.4),
    Column(terms.ENTRIES, 1),
)


def requests(evidence: Evidence, operators: Operators) -> Chapter:
    """What people asked for, as it stood when the day ended, and what was done on the day."""
    listed = [_request(each, evidence.night.end) for each in evidence.requests]
    return Chapter(
        wording.REQUESTS,
        [
            table_section(wording.REQUESTS_LIST, REQUESTS, listed, wording.NO_REQUESTS),
            _entries(wording.HANDLING, evidence, operators, ("subject.request", "subject.access", "subject.answer")),
            _entries(wording.ERASURES, evidence, operators, ("subject.erasure",)),
        ],
    )


def breaches(evidence: Evidence) -> Chapter:
    """The register of breaches, each with its clock."""
    rows = [_breach(each, evidence.night.end) for each in evidence.breaches]
    return Chapter(wording.BREACHES, [table_section(wording.BREACH_LIST, BREACHES, rows, wording.NO_BREACHES)])


def _request(each: SubjectRequest, now: datetime) -> Sequence[Text]:
    return (
        each.id,
        shown(each.tenant),
        each.subject,
        each.article,
        stacked(each.asked),
        stacked(each.due),
        named(terms.STATES, each.status),
        _answer(each, now),
        numbers(each.entries),
    )


def _answer(each: SubjectRequest, now: datetime) -> Text:
    if each.status == "open":
        return _left(now, each.due, DAY, "days", (wording.DAYS_LEFT, wording.OVERDUE))
    words = wording.REFUSED_ON if each.status == "refused" else wording.ANSWERED
    return fill(words, at=moment(each.answered), ground=shown(each.ground))


def _entries(title: Words, evidence: Evidence, operators: Operators, kinds: Sequence[str]) -> Section:
    listed = together(evidence, *kinds)
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            named(terms.KINDS, entry.kind),
            operators.shown(entry.body.get("operator")),
            pseudonym(said(entry, "subject")),
            shown(entry.body.get("request")),
            named(terms.OUTCOMES, entry.outcome),
            _grounds(entry),
        )
        for entry in listed.entries
    ]
    none = wording.NO_ERASURES if title == wording.ERASURES else wording.NO_HANDLING
    return table_section(title, HANDLING, rows, none, listed.total)


def _grounds(entry: Logged) -> str:
    """What it rests on, and why, in one line."""
    basis, reasons = entry.body.get("legal_basis"), reasons_text(entry.body.get("reasons"))
    return "; ".join(each for each in (basis and shown(basis), reasons) if each) or terms.DASH


def _breach(each: Breach, now: datetime) -> Sequence[Text]:
    return (
        each.id,
        shown(each.tenant),
        stacked(each.known),
        stacked(each.due),
        _clock(each, now),
        terms.UNKNOWN if each.people is None else str(each.people),
        joined([joined([named(wording.WHOM, whom), moment(at)], " ") for whom, at in sorted(each.notified.items())], "\n") or terms.DASH,
        numbers(each.entries),
    )


def _clock(each: Breach, now: datetime) -> Text:
    """Hours that were left to tell the authority when the day ended, or how long it took."""
    told = each.notified.get("authority")
    if told is None:
        return _left(now, each.due, HOUR, "hours", (wording.HOURS_LEFT, wording.HOURS_OVER))
    known, due, at = _at(each.known), _at(each.due), _at(told)
    if known is None or due is None or at is None:
        return terms.UNKNOWN
    return fill(wording.IN_TIME if at <= due else wording.TOO_LATE, hours=math.ceil((at - known).total_seconds() / HOUR))


def _left(now: datetime, due: str, unit: int, name: str, words: tuple[Words, Words]) -> Text:
    """Whole units until `due`, or begun ones since: never more time than there is."""
    at = _at(due)
    if at is None:
        return terms.UNKNOWN
    seconds = (at - now).total_seconds()
    return fill(words[0], **{name: math.floor(seconds / unit)}) if seconds >= 0 else fill(words[1], **{name: math.ceil(-seconds / unit)})


def _at(text: str) -> datetime | None:
    """An instant of an entry; None where it is none, which must not stop the report."""
    try:
        return instant(text, "")
    except BadRequest:
        return None
