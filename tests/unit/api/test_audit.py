"""What /audit makes of headers and filters before anything is read."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.api.audit import filters_of, wants_text
from app.audit.people.pseudonyms import Pseudonyms
from app.audit.reading.entries import Filters
from app.instants import Period


@pytest.mark.parametrize(
    ("accept", "text"),
    [
        ("text/plain", True),
        ("Text/Plain; charset=utf-8", True),
        ("text/html, text/plain;q=0.9, application/json;q=0.1", True),
        ("application/json, text/plain", False),
        ("application/json", False),
        ("*/*", False),
        ("text/html", False),
        ("", False),
    ],
)
def test_text_is_for_whoever_names_it_first(accept: str, text: bool):
    """Plain text is answered where it is named before JSON; everybody else gets JSON."""
    assert wants_text(accept) == text


def test_filters_are_told_as_they_were_understood(tmp_path: Path):
    """Instants are told in UTC and ids as they are stored, so that the record of a read has one spelling."""
    decision = "0192AAAA-0000-7000-8000-000000000003"
    filters = filters_of(Pseudonyms(tmp_path))
    asked = filters(tenant="e\u0301", decision=decision, begin="2026-01-01T08:00:00+08:00")

    assert asked == Filters(tenant="\u00e9", decision=decision.lower(), period=Period(datetime(2026, 1, 1, tzinfo=UTC)))
    assert asked.as_query == {"tenant": "\u00e9", "decision": decision.lower(), "from": "2026-01-01T00:00:00.000000Z"}
    assert filters().as_query == {}
