"""Wrong documents in our words."""

from collections.abc import Mapping

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from app.decision.request import DecideRequest
from app.errors import BadRequest
from app.fields import bad_field, explain


class Strict(BaseModel):
    """A document that takes no other field."""

    model_config = ConfigDict(extra="forbid")
    model: str


def wrong(document: Mapping[str, object]) -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        DecideRequest.model_validate(document)
    return refused.value


def first(document: Mapping[str, object], prefix: str = "") -> BadRequest:
    return bad_field(wrong(document).errors()[0], prefix)


@pytest.mark.parametrize(
    ("document", "prefix", "field"),
    [
        ({"model": "m"}, "", "tenant"),
        ({"tenant": "a", "model": "m", "max_tokens": -1}, "", "max_tokens"),
        ({"tenant": "a", "model": "m", "subject": {"roles": [1]}}, "", "subject.roles[0]"),
        ({"tenant": "a", "model": "m", "subject": {"roles": ["r", "a\0"]}}, "", "subject.roles[1]"),
        ({"tenant": "a", "model": "m", "subject": {"id": "s "}}, "", "subject.id"),
        ({"tenant": "a", "model": "m", "n": 0}, "requests[3]", "requests[3].n"),
        ({"tenant": "*", "model": "m"}, "requests[7]", "requests[7].tenant"),
        ({"tenant": "a", "model": "m", "purpose": "p" * 129}, "requests[7]", "requests[7].purpose"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(document: dict[str, object], prefix: str, field: str):
    """Lists, objects and the place in a batch are part of a field's name, whether its type or its text is wrong."""
    error = first(document, prefix)

    assert error.field == field
    assert error.message.startswith(f"{field}: ")


def test_a_check_of_ours_keeps_its_words_and_its_hint():
    """What an id may not be is told once, in the same words as in a path."""
    error = first({"tenant": "a ", "model": "m"}, "requests[7]")

    assert error.message == "requests[7].tenant: starts or ends with a space"
    assert error.advice == "Use 1 to 128 visible characters without leading or trailing space."


def test_a_wrong_value_is_never_repeated():
    """What was sent may be a secret, so the messages say what is wrong and not what it was."""
    error = wrong({"tenant": "a", "model": "m", "max_tokens": "hunter2"})

    assert "hunter2" not in bad_field(error.errors()[0]).message + explain(error)


def test_all_wrong_fields_stand_in_one_line():
    """Whoever corrects a file sees all of it at once."""
    error = wrong({"tenant": "", "model": "m", "subject": {"roles": [1]}})

    assert (
        explain(error)
        == "tenant: must have 1 to 128 characters, has 0; subject.roles[0]: Input should be a valid string; write it in quotes"
    )


@pytest.mark.parametrize("subject", [["a"], "a"])
def test_classes_of_the_program_are_no_words_of_a_document(subject: object):
    """Where fields are wanted and there are none, that is what is said."""
    assert (
        explain(wrong({"tenant": "a", "model": "m", "subject": subject})) == "subject: must have fields with names, such as `name: value`"
    )


def test_a_slip_of_a_name_is_told_once():
    """Not as one field too many and one too few; a name like none that is missing is one too many."""
    with pytest.raises(ValidationError) as refused:
        Strict.model_validate({"modle": "m", "other": 1})

    assert explain(refused.value) == "modle: there is no such field; write model; other: Extra inputs are not permitted"
