"""Entries of what people ask for, and of breaches."""

from datetime import UTC, datetime, timedelta

import orjson

from app.audit.records.breach import breach_known, breach_notified
from app.audit.records.entry import Entry, Sealed
from app.audit.records.subject import subject_access, subject_answer, subject_erasure, subject_request

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
OF = {"recorded": AT, "operator": "cli:root", "tenant": "acme"}


def entries() -> list[Entry]:
    return [
        subject_request(**OF, request="r", subject="p1:a", article="GDPR Art. 15", received=AT, due=AT + timedelta(31), sealed=Sealed()),
        subject_answer(**OF, request="r", subject="p1:a", outcome="refused", ground="GDPR Art. 12(5)"),
        subject_access(**OF, subject="p1:a", count=0, files=[{"name": "a.pdf", "sm3": "00"}], legal_basis="GDPR Art. 15"),
        subject_erasure(**OF, subject="p1:a", outcome="done", legal_basis="GDPR Art. 17(1)(a)", request="r"),
        breach_known(**OF, breach="b", aware=AT, due=AT + timedelta(hours=72), people=0, sealed=Sealed()),
        breach_notified(**OF, breach="b", whom="subjects", at=AT, sealed=Sealed()),
    ]


def test_they_are_kept_for_three_years():
    """Records of handling stay for three years (PIPL Art. 56), a leap day among them."""
    assert {entry.retention for entry in entries()} == {"d1096"}


def test_none_found_is_a_count():
    """0 entries and 0 people are said; what is not known, or asked for by nobody, is absent."""
    _, _, access, _, breach, _ = (orjson.loads(entry.body) for entry in entries())

    assert (access["count"], "request" in access, breach["count"]) == (0, False, 0)
    unknown = breach_known(**OF, breach="b", aware=AT, due=AT, people=None, sealed=Sealed())
    assert "count" not in orjson.loads(unknown.body)


def test_an_entry_may_know_its_id_before():
    """The files of a report name the entry that tells of them."""
    before = Sealed()
    access = subject_access(**OF, subject="p1:a", count=0, files=[], legal_basis="GDPR Art. 15", entry=before)

    assert access.id == before.entry_id
