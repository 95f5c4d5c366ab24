"""What people ask for, and breaches, on a log and a registry in PostgreSQL."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.errors import BadRequest
from app.reports.subjects.answering import RequestBusy
from app.reports.subjects.breaches import UnknownBreach, hours_left
from app.reports.subjects.person import Person
from app.reports.subjects.requests import RequestClosed, UnknownRequest, days_left
from tests.fixtures.signing import MADE
from tests.fixtures.subjects import Desk, desk_on

BEA = Person.of("acme", "bea@example.org", None)
BY = {"operator": "cli:root"}


async def states(desk: Desk) -> list[tuple[str, str | None]]:
    """How each request stands."""
    await desk.settle()
    return [(request.status, request.ground) for request in await desk.requests.listed(**BY, only_open=False)]


async def newest(desk: Desk) -> dict[str, Any]:
    """The body of the newest entry."""
    await desk.log.add()
    [(body,)] = await desk.log.rows("SELECT body FROM audit.body ORDER BY seq DESC LIMIT 1")
    return dict(orjson.loads(body))


async def test_a_request_is_opened_for_a_month(desk: Desk):
    """The entry has who asked as a pseudonym, and sealed; under which article; when it came in, and when it is due."""
    request = await desk.requests.open(BEA, 15, "2025-12-31T10:00:00Z", **BY)
    body = await newest(desk)

    assert (body["kind"], body["request"], body["article"], body["tenant"]) == ("subject.request", request.id, "GDPR Art. 15", "acme")
    assert (body["from"], body["expires"]) == ("2025-12-31T10:00:00.000000Z", "2026-01-31T10:00:00.000000Z")
    assert body["subject"] == desk.log.people.pseudonyms.subject("acme", "bea@example.org")
    assert body["sealed"].keys() == {"subject"}
    assert "bea" not in orjson.dumps(body).decode()
    assert days_left(request, MADE + timedelta(days=29, hours=10)) == 1.0


async def test_requests_are_answered_or_refused_once(desk: Desk):
    """Answered, refused with a ground, open; who closes a closed one is told when that was. The same may be asked twice."""
    first, second, _ = [await desk.requests.open(BEA, 16, None, **BY) for _ in range(3)]
    await desk.settle()
    await desk.requests.answer(first.id, None, **BY)
    await desk.settle()
    await desk.requests.refuse(second.id, "Art. 12(5)", "the fourth time this week", **BY)
    refusal = await newest(desk)

    assert await states(desk) == [("done", None), ("refused", "GDPR Art. 12(5)"), ("open", None)]
    assert (refusal["legal_basis"], refusal["sealed"].keys()) == ("GDPR Art. 12(5)", {"reason"})
    await desk.settle()
    for request, said in ((first, "answered"), (second, "refused")):
        with pytest.raises(RequestClosed, match=f"was {said} at 2026-01-01"):
            await desk.requests.answer(request.id, None, **BY)
    with pytest.raises(UnknownRequest, match="'r' is not in the log"):
        await desk.requests.refuse("r", "Art. 12(5)", None, **BY)


async def test_of_two_who_answer_at_once_one_wins(desk: Desk):
    """One answer is in the log, and the other one is told that it came second: while the first is at it, or after it."""
    request = await desk.requests.open(BEA, 16, None, **BY)
    await desk.settle()
    elsewhere = desk_on(desk.log, laid_out=False)
    answers = await asyncio.gather(
        desk.requests.answer(request.id, None, **BY),
        elsewhere.requests.refuse(request.id, "Art. 12(5)", None, **BY),
        return_exceptions=True,
    )
    await desk.settle()

    assert sorted(type(answer).__name__ for answer in answers) == ["RequestBusy", "SubjectRequest"]
    async with elsewhere.requests.answering.alone(request.id):
        with pytest.raises(RequestBusy):
            await desk.reports.give(BEA, Path("never made"), request_id=request.id, **BY)
    with pytest.raises(RequestClosed):
        await elsewhere.requests.answer(request.id, None, **BY)
    assert [body for (body,) in await desk.log.rows("SELECT body FROM audit.body") if b'"subject.answer"' in body][1:] == []


async def test_the_log_has_who_listed_requests(desk: Desk):
    """A look at the register is a read of the log; --open leaves what is closed."""
    request = await desk.requests.open(BEA, 15, None, **BY)
    await desk.settle()
    await desk.requests.answer(request.id, None, **BY)
    await desk.settle()

    assert await desk.requests.listed(**BY, only_open=True) == []
    body = await newest(desk)
    assert (body["kind"], body["query"], body["count"]) == ("log.read", {"kind": "subject.request", "open": True}, 0)


async def test_requests_of_one_person_are_found(desk: Desk):
    """Of two people of a tenant with one name each, only the one who was asked for; the log has for whom somebody looked, as a pseudonym."""
    mine, _ = [await desk.requests.open(person, 15, None, **BY) for person in (BEA, Person.of("acme", "Bea@example.org", None))]
    await desk.settle()

    assert await desk.requests.listed(**BY, only_open=True, person=BEA) == [replace(mine, entries=(0,))]
    body = await newest(desk)
    assert (body["tenant"], body["subject"], body["query"]["open"], body["count"]) == ("acme", mine.subject, True, 1)
    assert "bea" not in orjson.dumps(body).decode()


async def test_grounds_are_articles(desk: Desk):
    """A ground stands in clear, so it names an article and nothing else."""
    for ground in ("because", "Art. 12(5)!", "Art. 0", "GDPR", "", "art. 12(5)", "Art. 12(5)\n"):
        with pytest.raises(BadRequest, match=r"--ground: .* is no article"):
            await desk.requests.refuse("r", ground, None, **BY)


async def test_what_nobody_can_ask_is_refused(desk: Desk):
    """Articles that give no right to ask, and times that have not come."""
    with pytest.raises(BadRequest, match="--article"):
        await desk.requests.open(BEA, 33, None, **BY)
    with pytest.raises(BadRequest, match="--received: lies in the future"):
        await desk.requests.open(BEA, 15, "2026-01-01T00:00:00.000001Z", **BY)


async def test_a_breach_is_notified_in_72_hours(desk: Desk):
    """Hours are left until the authority was told; what happened is sealed."""
    known = await desk.breaches.known("2025-12-31T00:00:00Z", "keys of Bea lost", tenant="acme", people=None, **BY)
    body = await newest(desk)
    await desk.settle()
    [before] = await desk.breaches.listed(**BY)
    await desk.settle()
    await desk.breaches.notified(known.id, "authority", "2025-12-31T12:00:00Z", None, **BY)
    await desk.settle()
    [after] = await desk.breaches.listed(**BY)

    assert (body["from"], body["expires"]) == ("2025-12-31T00:00:00.000000Z", "2026-01-03T00:00:00.000000Z")
    assert ("count" in body, body["sealed"].keys(), "Bea" in orjson.dumps(body).decode()) == (False, {"problem"}, False)
    assert (hours_left(before, MADE), hours_left(before, MADE + timedelta(days=3))) == (48.0, -24.0)
    assert (hours_left(after, MADE), after.notified) == (None, {"authority": "2025-12-31T12:00:00.000000Z"})


async def test_a_late_notice_says_why(desk: Desk):
    """After 72 hours the authority is told with reasons, once: what is found out later, and the people, have no limit of hours."""
    known = await desk.breaches.known("2025-12-01T00:00:00Z", "a lost disk", tenant=None, people=3, **BY)
    await desk.settle()

    with pytest.raises(BadRequest, match="--reason: is missing; the authority was to be told before 2025-12-04"):
        await desk.breaches.notified(known.id, "authority", None, None, **BY)
    await desk.breaches.notified(known.id, "authority", None, "nobody had counted", **BY)
    assert (await newest(desk))["sealed"].keys() == {"reason"}
    await desk.settle()
    await desk.breaches.notified(known.id, "authority", None, None, **BY)
    assert "sealed" not in await newest(desk)
    await desk.settle()
    await desk.breaches.notified(known.id, "subjects", None, None, **BY)
    assert (await newest(desk))["legal_basis"] == "GDPR Art. 34(1)"


async def test_a_notice_belongs_to_a_breach_and_comes_after_it(desk: Desk):
    """No breach of that id, a time before it was known, one that has not come, nothing said: refused by the option."""
    known = await desk.breaches.known("2025-12-31T00:00:00Z", "a lost disk", tenant=None, people=None, **BY)
    await desk.settle()

    with pytest.raises(UnknownBreach):
        await desk.breaches.notified("b", "authority", None, None, **BY)
    with pytest.raises(BadRequest, match="--at: is before"):
        await desk.breaches.notified(known.id, "authority", "2025-12-30T00:00:00Z", None, **BY)
    for known_at, what, people, refused in (
        ("2027-01-01T00:00:00Z", "x", None, "--aware: lies in the future"),
        ("2025-12-31T00:00:00Z", " ", None, "--what: says nothing"),
        ("2025-12-31T00:00:00Z", "\u200b", None, "--what: says nothing"),
        ("0001-01-01T00:00:00Z", "x", None, "--aware: lies more than 10 years back"),
        ("2025-12-31T00:00:00Z", "x", -1, "--people"),
    ):
        with pytest.raises(BadRequest, match=refused):
            await desk.breaches.known(known_at, what, tenant=None, people=people, **BY)
