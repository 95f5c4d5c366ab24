"""How requests and breaches stand, by their entries."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from app.audit.records.breach import breach_known, breach_notified
from app.audit.records.entry import Entry, Sealed
from app.audit.records.subject import subject_access, subject_answer, subject_erasure, subject_request
from app.reports.evidence.facts import Logged
from app.reports.evidence.registers import breaches, open_requests, subject_requests

AT = datetime(2026, 1, 31, 10, tzinfo=UTC)
DUE = datetime(2026, 2, 28, 10, tzinfo=UTC)
OF = {"recorded": AT, "operator": "cli:root", "tenant": "acme"}
ALICE, BOB = "p1:aaaa", "p1:bbbb"


def opened(name: str, subject: str = ALICE, article: int = 15) -> Entry:
    return subject_request(**OF, request=name, subject=subject, article=f"GDPR Art. {article}", received=AT, due=DUE, sealed=Sealed())


def answered(name: str, outcome: str = "done", subject: str = ALICE, ground: str | None = None) -> Entry:
    return subject_answer(**OF, request=name, subject=subject, outcome=outcome, ground=ground)


def given_access(name: str | None, subject: str = ALICE) -> Entry:
    return subject_access(**OF, subject=subject, count=1, files=[], legal_basis="GDPR Art. 15", request=name)


def erased(name: str | None, outcome: str = "done") -> Entry:
    return subject_erasure(**OF, subject=ALICE, outcome=outcome, legal_basis="GDPR Art. 17(3)(b)", request=name)


def logged(*entries: Entry) -> list[Logged]:
    return [Logged(number, orjson.loads(entry.body), entry.retention) for number, entry in enumerate(entries)]


def states(*entries: Entry) -> list[tuple[str, str, str | None]]:
    return [(request.id, request.status, request.ground) for request in subject_requests(logged(*entries))]


def test_a_request_says_what_its_entry_says():
    """Who asked, under which article, when, and when the answer is due; the numbers are those of its entries."""
    [request] = subject_requests(logged(opened("r"), answered("r")))

    assert (request.tenant, request.subject, request.article) == ("acme", ALICE, "GDPR Art. 15")
    assert (request.asked, request.due) == ("2026-01-31T10:00:00.000000Z", "2026-02-28T10:00:00.000000Z")
    assert (request.status, request.answered, request.entries) == ("done", "2026-01-31T10:00:00.000000Z", (0, 1))


def test_refused_requests_have_their_ground():
    """A refusal names the article that it rests on, an answer none."""
    assert states(opened("r"), answered("r", "refused", ground="GDPR Art. 12(5)")) == [("r", "refused", "GDPR Art. 12(5)")]
    assert states(opened("r"), answered("r")) == [("r", "done", None)]


def test_deeds_answer_what_they_are_for():
    """A report answers access and portability, an erasure erasure, and neither anything else."""
    assert [
        status for _, status, _ in states(*(opened(f"{one}", article=one) for one in (15, 20, 17)), *map(given_access, ("15", "20", "17")))
    ] == [
        "done",
        "done",
        "open",
    ]
    assert states(opened("r", article=17), erased("r")) == [("r", "done", None)]
    assert states(opened("r", article=17), erased("r", "refused")) == [("r", "refused", "GDPR Art. 17(3)(b)")]
    assert states(opened("r"), given_access(None), erased(None)) == [("r", "open", None)]


def test_the_first_answer_counts():
    """What is answered twice stays as it was first, and the second entry is named as well."""
    [request] = subject_requests(logged(opened("r"), answered("r"), answered("r", "refused", ground="GDPR Art. 12(5)")))

    assert (request.status, request.ground, request.entries) == ("done", None, (0, 1, 2))


def test_answers_to_nobody_are_none():
    """An answer to a request that nobody opened, or to another person's, changes nothing."""
    assert states(answered("x"), opened("r"), given_access("r", BOB), answered("r", subject=BOB)) == [("r", "open", None)]


Deed = tuple[str, str]


@given(st.lists(st.tuples(st.sampled_from(["open", "done", "refused"]), st.sampled_from("abc")), max_size=12))
def test_a_request_is_open_until_its_first_answer(deeds: list[Deed]):
    """For any order of entries: known are those that were opened, and each ends as the first answer after that said."""
    expected: dict[str, str] = {}
    for deed, name in deeds:
        if deed == "open":
            expected.setdefault(name, "open")
        elif expected.get(name) == "open":
            expected[name] = deed
    made = [opened(name) if deed == "open" else answered(name, deed, ground="GDPR Art. 12(5)") for deed, name in deeds]
    found = subject_requests(logged(*made))

    assert {request.id: request.status for request in found} == expected
    assert [request.id for request in open_requests(found)] == [name for name, state in expected.items() if state == "open"]


def known(name: str, people: int | None = None) -> Entry:
    return breach_known(**OF, breach=name, aware=AT, due=AT + timedelta(hours=72), people=people, sealed=Sealed())


def told(name: str, whom: str, at: datetime) -> Entry:
    return breach_notified(**OF, breach=name, whom=whom, at=at, sealed=Sealed())


def test_a_breach_says_who_was_told_first_when():
    """The clock begins when it became known; of two times the first counts, and whom nobody told is not there."""
    hour = timedelta(hours=1)
    entries = [known("b", 7), told("b", "authority", AT + hour), told("b", "authority", AT + 2 * hour), told("x", "subjects", AT)]
    [breach] = breaches(logged(*entries))

    assert (breach.known, breach.due, breach.people) == ("2026-01-31T10:00:00.000000Z", "2026-02-03T10:00:00.000000Z", 7)
    assert (breach.notified, breach.entries) == ({"authority": "2026-01-31T11:00:00.000000Z"}, (0, 1, 2))


def test_how_many_people_may_be_unknown():
    """A number that nobody knows is none, not 0."""
    assert breaches(logged(known("b")))[0].people is None


def test_notices_say_under_which_paragraph():
    """The authority is told by Art. 33(1), the people by Art. 34(1)."""
    bodies: Sequence[Mapping[str, Any]] = [orjson.loads(told("b", whom, AT).body) for whom in ("authority", "subjects")]

    assert [body["legal_basis"] for body in bodies] == ["GDPR Art. 33(1)", "GDPR Art. 34(1)"]
