"""Requests and breaches with their clocks, read as the day ended (GDPR Art. 12(3), 33)."""

from dataclasses import replace

import orjson
import pytest

from app.audit.records.entry import canonical
from app.reports.evidence.facts import Breach, Evidence, SubjectRequest
from tests.fixtures.night import ANNA, NightLog, answer, eventful, quota, request
from tests.fixtures.report_content import cells, gdpr_of

EVIDENCE = NightLog.of(quota("acme")).evidence()
"""Of a day that ends at 2026-11-29T16:00Z."""


def breach(known: str, due: str, **notified: str) -> Evidence:
    return replace(EVIDENCE, breaches=[Breach("b-1", "acme", known, due, None, notified, (3, 4))])


@pytest.mark.parametrize(
    ("known", "due", "told", "clock"),
    [
        ("2026-11-29T10:00:00.000000Z", "2026-12-02T10:00:00.000000Z", None, "hours left: 66"),
        ("2026-11-29T10:30:00.000000Z", "2026-12-02T10:30:00.000000Z", None, "hours left: 66"),
        ("2026-11-26T16:00:00.000000Z", "2026-11-29T16:00:00.000000Z", None, "hours left: 0"),
        ("2026-11-26T15:59:59.000000Z", "2026-11-29T15:59:59.000000Z", None, "hours over: 1"),
        ("2026-11-20T16:00:00.000000Z", "2026-11-23T16:00:00.000000Z", None, "hours over: 144"),
        (
            "2026-11-26T00:00:00.000000Z",
            "2026-11-29T00:00:00.000000Z",
            "2026-11-29T00:00:00.000000Z",
            "in time, hours after it was known: 72",
        ),
        (
            "2026-11-26T00:00:00.000000Z",
            "2026-11-29T00:00:00.000000Z",
            "2026-11-29T00:00:01.000000Z",
            "too late, hours after it was known: 73",
        ),
        ("2026-11-26T00:00:00.000000Z", "soon", None, "unknown"),
        ("soon", "2026-11-29T00:00:00.000000Z", "2026-11-29T00:00:01.000000Z", "unknown"),
    ],
)
def test_clock_of_a_breach(known: str, due: str, told: str | None, clock: str) -> None:
    """Whole hours that are left, begun ones that are over: never more time than there is."""
    evidence = breach(known, due, **({"authority": told} if told else {}))
    (row,) = cells(gdpr_of(evidence), "Breaches of personal data: the clock of 72 hours")
    assert row[4] == clock
    assert row[5] == "unknown"
    assert row[7] == "3, 4"


def test_a_ground_that_is_no_text_stops_no_report() -> None:
    """It is printed as JSON, like every other value that an entry should not have."""
    (erasure,) = [entry for entry in eventful() if entry.kind == "subject.erasure"]
    body = canonical(orjson.loads(erasure.body) | {"legal_basis": {"a": [1]}})
    (row,) = cells(gdpr_of(NightLog.of(replace(erasure, body=body)).evidence()), "Erasures")
    assert row[7] == '{"a":[1]}'


def test_telling_people_is_not_telling_the_authority() -> None:
    """The clock runs on until the authority was told."""
    evidence = breach("2026-11-29T10:00:00.000000Z", "2026-12-02T10:00:00.000000Z", subjects="2026-11-29T11:00:00.000000Z")
    (row,) = cells(gdpr_of(evidence), "Breaches of personal data: the clock of 72 hours")
    assert row[4] == "hours left: 66"
    assert row[6] == "people 2026-11-29T11:00:00Z"


@pytest.mark.parametrize(
    ("due", "left"),
    [
        ("2026-12-29T16:00:00.000000Z", "days left: 30"),
        ("2026-11-30T15:59:59.000000Z", "days left: 0"),
        ("2026-11-29T15:00:00.000000Z", "days overdue: 1"),
    ],
)
def test_open_request_has_days_left(due: str, left: str) -> None:
    """Whole days, from the end of the day that is reported."""
    asked = SubjectRequest("r-1", "acme", ANNA, "GDPR Art. 15", "2026-11-29T15:00:00.000000Z", due, "open", entries=(1,))
    (row,) = cells(gdpr_of(replace(EVIDENCE, requests=[asked])), "Requests as they stood when the day ended")
    assert row[6:8] == ["open", left]


def test_answers_and_refusals_with_their_ground() -> None:
    """A refused request has the article it rests on; what was done on the day is listed with its entry."""
    log = NightLog.of(request("a"), request("b"), answer("a"), answer("b", ground="GDPR Art. 17(3)(b)"))
    document = gdpr_of(log.evidence())
    assert [row[6:] for row in cells(document, "Requests as they stood when the day ended")] == [
        ["answered", "answered 2026-11-29T04:00:00Z", "0, 2"],
        ["refused", "refused 2026-11-29T04:00:00Z on GDPR Art. 17(3)(b)", "1, 3"],
    ]
    assert [(row[0], row[2], row[7]) for row in cells(document, "What was done on this day")] == [
        ("0", "request of a person", "—"),
        ("1", "request of a person", "—"),
        ("2", "answer to a person", "—"),
        ("3", "answer to a person", "GDPR Art. 17(3)(b)"),
    ]


def test_erasures_have_their_ground() -> None:
    """Entries of erasures are shown when there are some."""
    (row,) = cells(gdpr_of(NightLog.of(*eventful()).evidence()), "Erasures")
    assert row[6:] == ["done", "GDPR Art. 17(1)(b)"]
