"""Entries of changes of quotas."""

from datetime import UTC, datetime
from uuid import UUID

import orjson

from app.audit.records.entry import Sealed
from app.audit.records.quota import quota_deleted, quota_in_force

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ID = UUID("01890000-0000-7000-8000-000000000001")
DIFF = [{"path": "/qps", "before": "5", "after": "6"}]


def test_a_change_carries_snapshots_and_difference():
    """A change records operator, tenant, version, both snapshots, their difference, and the reason sealed."""
    made = quota_in_force(
        recorded=AT,
        operator="op",
        tenant="a",
        version=2,
        before={"qps": "5"},
        after={"qps": "6"},
        diff=DIFF,
        sealed=Sealed(ID, {"reason": "s1:x"}),
    )

    assert orjson.loads(made.body) == {
        "v": 1,
        "id": str(ID),
        "kind": "quota.in_force",
        "recorded": "2026-01-02T03:04:05.000006Z",
        "operator": "op",
        "tenant": "a",
        "outcome": "done",
        "quota_version": 2,
        "before": {"qps": "5"},
        "after": {"qps": "6"},
        "diff": DIFF,
        "sealed": {"reason": "s1:x"},
    }


def test_deletion_has_no_after():
    """What is gone has a before and no after, and without a reason nothing is sealed."""
    made = quota_deleted(recorded=AT, operator="op", tenant="a", version=3, before={"qps": "5"}, diff=[], sealed=Sealed(ID))

    assert {"before", "diff", "id", "kind", "operator", "outcome", "quota_version", "recorded", "tenant", "v"} == set(
        orjson.loads(made.body)
    )
