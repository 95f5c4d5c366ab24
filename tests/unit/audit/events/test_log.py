"""Entries that the log keeps about itself."""

from datetime import UTC, datetime

import orjson

from app.audit.events.log import audit_purge, log_read

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_reading_the_log_leaves_who_read_what():
    """An entry of a reading names the reader, the route, what was asked for and what it gave."""
    body = orjson.loads(log_read(recorded=AT, operator="auditor", read="/audit/entries", query={"kind": "log.read"}, count=7).body)

    assert tuple(body[name] for name in ("operator", "read", "query", "count")) == ("auditor", "/audit/entries", {"kind": "log.read"}, 7)


def test_a_purge_names_the_shelf_and_its_entries():
    """What went is named by its shelf, the numbers of its first and last entry and their count."""
    body = orjson.loads(audit_purge(recorded=AT, operator="cli:root", shelf="d365-2026-01", first=3, last=9, count=5).body)

    assert tuple(body[name] for name in ("shelf", "first", "last", "count")) == ("d365-2026-01", 3, 9, 5)
