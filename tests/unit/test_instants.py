"""Instants as callers write them."""

from datetime import UTC, datetime

import pytest

from app.errors import BadRequest
from app.instants import Period, instant


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-31T00:00:00Z", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31t08:00:00.5z", datetime(2026, 1, 31, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31 08:00:00.000006999+08:00", datetime(2026, 1, 31, 0, 0, 0, 6, tzinfo=UTC)),
        ("2025-12-31T19:30:00-04:30", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_rfc_3339_is_read(text: str, wanted: datetime):
    """An instant with its offset is the same in UTC; what is finer than a microsecond is cut off."""
    assert instant(text, "from") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1767225600",
        "2026-01-31",
        "2026-01-31T00:00:00",
        "2026-01-31T00:00Z",
        "20260131T000000Z",
        "2026-W05-6T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:59:60Z",
        "2026-01-31T00:00:00 08:00",
        "2026-01-31T00:00:00+0800",
        "0001-01-01T00:00:00+01:00",
        "２０２６-01-31T00:00:00Z",
        "2026-01-31T00:00:00Z\n",
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_field(text: str):
    """Local times, other calendars and days that do not exist are refused, never guessed."""
    with pytest.raises(BadRequest, match=r"^from: not an instant") as refused:
        instant(text, "from")

    assert refused.value.field == "from"


@pytest.mark.parametrize(("field", "in_url"), [("from", True), ("--received", False)])
def test_the_form_to_write_is_told_where_it_was_written(field: str, in_url: bool):
    """How + stands in a URL helps nobody at a terminal."""
    with pytest.raises(BadRequest, match=f"^{field}: ") as refused:
        instant("yesterday", field)
    assert "such as 2026-01-31T00:00:00Z" in refused.value.advice
    assert ("%2B" in refused.value.advice) == in_url


def test_a_period_is_read_from_its_two_parameters():
    """What is given bounds it, the other side stays open, and it is told in one spelling."""
    january, february = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)

    assert Period.parse("2026-01-01T08:00:00+08:00", "2026-02-01T00:00:00Z") == Period(january, february)
    assert Period.parse(None, "2026-02-01T00:00:00Z").bounds == {"end": february}
    assert Period(january).as_query == {"from": "2026-01-01T00:00:00.000000Z"}
    assert (Period.parse(None, None).bounds, Period().as_query) == ({}, {})


@pytest.mark.parametrize(
    ("begin", "end", "field"),
    [("yesterday", None, "--from"), (None, "2026-01-01", "--to"), ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "to")],
)
def test_a_period_that_is_none_is_refused(begin: str | None, end: str | None, field: str):
    """A side that is no instant is named as the caller spells it; one that ends as or before it begins holds nothing."""
    with pytest.raises(BadRequest) as refused:
        Period.parse(begin, end, prefix="--")

    assert refused.value.field == field
