"""What may be asked for: nothing that could never open the model, and nothing without an end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from app.approvals.wish import Answer, Wish
from app.catalog.models import ModelSpec, Sensitive
from app.errors import BadRequest
from app.fields import bad_field
from app.instants import rfc3339

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GOOD = {
    "tenant": "a",
    "model": "m",
    "action": "train",
    "purpose": "model-training",
    "subject_id": "alice",
    "expires": "2026-02-01T00:00:00+08:00",
    "reason": "quarterly training",
}
SPEC = ModelSpec(id="m", sensitive=Sensitive(actions=("train",), roles=("r",), purposes=("model-training",), retention_days=730))
WITHOUT_PURPOSES = ModelSpec(id="m", sensitive=Sensitive(actions=("train",), roles=("r",), retention_days=730))


def refused_field(**fields: Any) -> str | None:
    """The field that a wish with these is refused for; None where it is taken. A field that is None is left out."""
    document = {name: value for name, value in (GOOD | fields).items() if value is not None}
    try:
        Wish.model_validate(document)
    except ValidationError as error:
        return bad_field(error.errors()[0]).field
    return None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, None),
        ({"subject_id": None, "everyone": True}, None),
        ({"subject_id": None}, "body"),
        ({"everyone": True}, "body"),
        ({"subject_id": None, "everyone": "yes"}, "everyone"),
        ({"subject_id": "a\u200bb"}, "subject_id"),
        ({"tenant": "*"}, "tenant"),
        ({"action": ""}, "action"),
        ({"action": ["train"]}, "action"),
        ({"reason": None}, "reason"),
        ({"reason": ""}, "reason"),
        ({"reason": " \n"}, "reason"),
        ({"reason": "\u200b"}, "reason"),
        ({"reason": "x" * 2001}, "reason"),
        ({"expires": None}, "expires"),
        ({"approved": True}, "approved"),
    ],
)
def test_its_shape_is_held(fields: dict[str, Any], field: str | None):
    """One scope, one action, a reason and an end; a misspelt field is refused, since what it meant would be missing."""
    assert refused_field(**fields) == field


@pytest.mark.parametrize(
    ("ahead", "allowed"),
    [
        (timedelta(0), False),
        (timedelta(seconds=-1), False),
        (timedelta(seconds=1), True),
        (timedelta(days=366), True),
        (timedelta(days=366, microseconds=1), False),
    ],
)
def test_it_ends_within_a_year(ahead: timedelta, allowed: bool):
    """Later than now, and at most 366 days."""
    wish = Wish(**(GOOD | {"expires": rfc3339(NOW + ahead)}))

    if allowed:
        assert wish.end(NOW) == NOW + ahead
    else:
        with pytest.raises(BadRequest, match="expires"):
            wish.end(NOW)


def test_an_end_without_an_offset_is_refused():
    """Which instant it means would depend on who reads it."""
    with pytest.raises(BadRequest, match="RFC 3339"):
        Wish(**(GOOD | {"expires": "2026-02-01T00:00:00"})).end(NOW)


@pytest.mark.parametrize(
    ("spec", "fields", "field"),
    [
        (SPEC, {}, None),
        (None, {}, "model"),
        (ModelSpec(id="m"), {}, "model"),
        (SPEC, {"action": "infer"}, "action"),
        (SPEC, {"purpose": "marketing"}, "purpose"),
        (SPEC, {"purpose": None}, "purpose"),
        (WITHOUT_PURPOSES, {"purpose": None}, None),
        (WITHOUT_PURPOSES, {}, "purpose"),
    ],
)
def test_it_fits_the_models_spec(spec: ModelSpec | None, fields: dict[str, Any], field: str | None):
    """Only words that the spec declares, so that what is asked for can open the model, and stands in the log in clear."""
    wish = Wish(**(GOOD | fields))

    if field is None:
        wish.check(spec)
    else:
        with pytest.raises(BadRequest) as refused:
            wish.check(spec)
        assert refused.value.field == field


def test_an_answer_is_a_reason_and_nothing_else():
    """Whoever answers says why, and can change nothing of what was asked."""
    assert Answer(reason="seen").reason == "seen"
    with pytest.raises(ValidationError):
        Answer(reason="seen", expires="2030-01-01T00:00:00Z")  # type: ignore[call-arg]
