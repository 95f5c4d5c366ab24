"""Entries that count decisions."""

from datetime import UTC, datetime

import orjson

from app.audit.records.summary import decisions_minute

AT = datetime(2026, 1, 2, 3, 5, 0, 6, tzinfo=UTC)


def test_a_summary_names_its_minute_and_counts():
    """A summary has its minute and how many decisions of which tenant, model and outcome it counts."""
    minute = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    made = decisions_minute(recorded=AT, minute=minute, tenant="a", model="m", outcome="quota", count=3, replica="r-1")
    body = orjson.loads(made.body)

    assert tuple(body[n] for n in ("minute", "tenant", "model", "outcome", "count")) == (
        "2026-01-02T03:04:00.000000Z",
        "a",
        "m",
        "quota",
        3,
    )
