"""Entries that the log keeps about itself."""

from datetime import UTC, datetime

import orjson

from app.audit.records.log import log_read

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_reading_the_log_leaves_who_read_what():
    """An entry of a reading names the reader, what was read, what was asked for and what it gave."""
    body = orjson.loads(log_read(recorded=AT, operator="auditor", read="entries", query={"kind": "log.read"}, count=7).body)

    assert tuple(body[name] for name in ("operator", "read", "query", "count")) == ("auditor", "entries", {"kind": "log.read"}, 7)


def test_a_refused_reading_is_found_by_what_it_was_about():
    """It ends in `refused`; its tenant and its subject are the entry's own, and what was asked for stands beside them."""
    query = {"tenant": "a", "subject": "p1:aa", "kind": "log.read"}
    body = orjson.loads(log_read(recorded=AT, operator="gw", read="entries", outcome="refused", query=query).body)

    assert tuple(body[name] for name in ("outcome", "operator", "tenant", "subject")) == ("refused", "gw", "a", "p1:aa")
    assert (body["query"], "count" in body) == ({"tenant": "a", "kind": "log.read"}, False)
