"""Entries of approvals."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import pytest

from app.audit.records.approval import ApprovalFacts, Step, approval_step
from app.audit.records.entry import Sealed

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ID = UUID("01890000-0000-7000-8000-000000000001")
FACTS = ApprovalFacts(str(ID), "a", "m", "train", "model-training", "p1:x", AT + timedelta(days=1))


@pytest.mark.parametrize(
    ("step", "outcome", "tells_its_end"),
    [("asked", "done", True), ("approved", "done", True), ("refused", "refused", False), ("revoked", "done", False)],
)
def test_each_step_says_what_it_is_about(step: Step, outcome: str, tells_its_end: bool):
    """Every step names scope and person by pseudonym; until when it counts stands where that begins, the reason sealed."""
    made = approval_step(FACTS, step, recorded=AT, operator="op", retention_days=730, sealed=Sealed(ID, {"reason": "s1:x"}))

    scope = {"approval_id": str(ID), "model": "m", "action": "train", "purpose": "model-training", "subject": "p1:x"}
    envelope = {"v": 1, "id": str(ID), "recorded": "2026-01-02T03:04:05.000006Z", "operator": "op", "tenant": "a", "outcome": outcome}
    ends = {"expires": "2026-01-03T03:04:05.000006Z"} if tells_its_end else {}
    assert orjson.loads(made.body) == scope | envelope | ends | {"kind": f"approval.{step}", "sealed": {"reason": "s1:x"}}
    assert made.retention == "d730"
