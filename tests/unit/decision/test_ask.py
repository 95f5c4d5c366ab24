"""Questions: sections of what rules may look at, in the tenant's own time, encoded once for all who share them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest

from app.catalog.models import ModelSpec
from app.clock import ManualClock
from app.decision.ask import Asker
from app.decision.request import DecideRequest
from app.policy.policy import Generation
from app.policy.question import EMPTY, Question, Section
from app.quota.quota import Quota
from app.quota.registry import Tenant

SPEC = ModelSpec(id="m")
NONE_KNOWN = SimpleNamespace(facts=lambda *_: None)
"""Approvals of which none is known."""


def tenant(zone: str) -> Tenant:
    return Tenant.of(f"in-{zone}", Quota(qps=Decimal(5), zone=zone), 1)


def asked(
    asker: Asker, who: Tenant | None, spec: ModelSpec | None = SPEC, generation: Generation | None = None, **fields: object
) -> Question:
    request = DecideRequest.model_validate({"tenant": "a", "model": "m", **fields})
    return asker.ask(request, who, spec, generation or Generation(1))


@pytest.mark.parametrize(
    ("instant", "zone", "want"),
    [
        ("2026-07-01T00:59:59.999", "UTC", {"hour": 0, "minute": 59, "weekday": "wednesday"}),
        ("2026-07-01T01:00:00.000", "UTC", {"hour": 1, "minute": 0, "weekday": "wednesday"}),
        ("2026-07-01T02:00:00.000", "UTC", {"hour": 2, "minute": 0, "weekday": "wednesday"}),
        ("2026-06-30T16:30:00.000", "Asia/Shanghai", {"hour": 0, "minute": 30, "weekday": "wednesday"}),
        ("2026-03-29T00:59:00.000", "Europe/Berlin", {"hour": 1, "minute": 59, "weekday": "sunday"}),
        ("2026-03-29T01:00:00.000", "Europe/Berlin", {"hour": 3, "minute": 0, "weekday": "sunday"}),  # the clocks go forward
        ("2026-10-25T00:30:00.000", "Europe/Berlin", {"hour": 2, "minute": 30, "weekday": "sunday"}),
        ("2026-10-25T01:30:00.000", "Europe/Berlin", {"hour": 2, "minute": 30, "weekday": "sunday"}),  # and back
        ("2026-07-01T00:00:00.000", "Asia/Kathmandu", {"hour": 5, "minute": 45, "weekday": "wednesday"}),
    ],
)
def test_time_is_a_part_of_the_question_in_the_tenants_zone(instant: str, zone: str, want: dict[str, object]):
    """Rules see minute, hour and weekday of the tenant's day, to the very millisecond at which they change."""
    clock = ManualClock(datetime.fromisoformat(instant).replace(tzinfo=UTC))

    assert asked(Asker(clock, NONE_KNOWN), tenant(zone)).time.value == want


def test_time_moves_with_the_clock_in_every_zone():
    """A section kept for one minute is not shown in the next, also after the wall clock was set back."""
    clock = ManualClock(datetime(2026, 7, 1, 12, 59, 59, tzinfo=UTC))
    asker, zones = Asker(clock, NONE_KNOWN), [tenant("UTC"), tenant("Asia/Shanghai")]

    def hours() -> list[object]:
        return [asked(asker, who).time.value["hour"] for who in zones]

    assert hours() == [12, 20]
    clock.advance(1000)
    assert hours() == [13, 21]
    clock.step_utc(timedelta(hours=-2))
    assert hours() == [11, 19]


def test_sections_that_many_share_are_built_once():
    """Model, time and request of equal questions are the same objects, so nobody encodes them again."""
    asker, who = Asker(ManualClock(), NONE_KNOWN), tenant("UTC")
    first, second = asked(asker, who, purpose="chat"), asked(asker, who, purpose="chat", prompt_tokens=9, request_id="r")

    for name in ("tenant", "model", "time", "request"):
        assert getattr(first, name) is getattr(second, name)


def test_a_changed_model_is_a_changed_section():
    """Another spec under the same id is never answered with the section of the one before."""
    asker, who = Asker(ManualClock(), NONE_KNOWN), tenant("UTC")
    before = asked(asker, who, ModelSpec(id="m", cost=1))
    after = asked(asker, who, ModelSpec(id="m", cost=2))

    assert (before.model.value["cost"], after.model.value["cost"]) == (1, 2)
    assert before.model.key != after.model.key


def test_readings_are_those_of_the_generation():
    """A question shows its model's readings of the generation it is asked under, and none where there are none."""
    readings = Section.of({"live": 1})
    asker, who = Asker(ManualClock(), NONE_KNOWN), tenant("UTC")

    assert asked(asker, who, generation=Generation(2, {"m": readings})).readings is readings
    assert asked(asker, who, generation=Generation(2, {"other": readings})).readings is EMPTY


def test_the_unknown_is_empty_and_never_null():
    """Without tenant, model or subject the sections are empty; what is not said is absent, since null compares in Rego."""
    question = asked(Asker(ManualClock(), NONE_KNOWN), None, None)

    assert [question.tenant, question.model, question.readings, question.subject, question.time] == [EMPTY] * 5
    assert b"null" not in question.request.key


def test_what_an_approval_is_stands_with_the_subject():
    """Rules see of a known approval what the room says of it, asked by tenant, id and subject; an unknown one is absent."""
    asked_for = []

    def facts(*about: object) -> dict[str, object] | None:
        asked_for.append(about)
        return {"state": "asked"} if about[1] == "known" else None

    asker, who = Asker(ManualClock(), SimpleNamespace(facts=facts)), tenant("UTC")
    subject = {"id": "s", "roles": ["r"]}

    assert asked(asker, who, subject=subject, approval_id="known").subject.value == {
        "roles": ["r"],
        "attributes": {},
        "approval": {"state": "asked"},
    }
    assert asked(asker, who, approval_id="known").subject.value == {"approval": {"state": "asked"}}
    assert asked(asker, who, approval_id="other").subject is EMPTY
    assert asked_for == [("a", "known", "s"), ("a", "known", None), ("a", "other", None)]


def test_roles_in_another_order_make_the_same_question():
    """Order and repetition of roles do not make another memo key; a role more does."""
    asker, who = Asker(ManualClock(), NONE_KNOWN), tenant("UTC")
    keys = [asked(asker, who, subject={"id": str(roles), "roles": roles}).subject.key for roles in (["a", "b"], ["b", "a", "b"], ["a"])]

    assert keys[0] == keys[1]
    assert keys[0] != keys[2]
