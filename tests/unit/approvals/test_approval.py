"""Which step may follow which, by whom, and what rules see of an approval."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.approvals.approval import Approval, ApprovalEnded, SameAsker, Step
from app.auth.keys import Principal

AT = datetime(2026, 1, 2, tzinfo=UTC)
EXPIRES = AT + timedelta(days=30)
ID = UUID("01890000-0000-7000-8000-000000000001")
ASKED = Step("asker", "k-1", AT, "s1:x")
APPROVAL = Approval(ID, "a", "m", "train", "model-training", "p1:alice", EXPIRES, "asked", ASKED)


def principal(name: str, key_id: str) -> Principal:
    return Principal(key_id, name, frozenset({"approver"}), frozenset())


OTHER = principal("other", "k-2")


@pytest.mark.parametrize("by", [principal("asker", "k-1"), principal("asker", "k-2"), principal("renamed", "k-1")])
def test_whoever_asked_cannot_answer(by: Principal):
    """Neither the same key, nor another one of the same name, nor the same under another name."""
    with pytest.raises(SameAsker):
        APPROVAL.check_answer(by, AT)


@pytest.mark.parametrize(
    ("moved", "now", "standing"),
    [
        ("asked", EXPIRES - timedelta(microseconds=1), "asked"),
        ("asked", EXPIRES, "expired"),
        ("approved", EXPIRES - timedelta(microseconds=1), "approved"),
        ("approved", EXPIRES, "expired"),
        ("refused", EXPIRES, "refused"),
        ("revoked", EXPIRES, "revoked"),
    ],
)
def test_time_ends_what_is_open(moved: str, now: datetime, standing: str):
    """From the instant at which it expires it counts no more; what was refused or revoked stays so."""
    assert replace(APPROVAL, state=moved).standing(now) == standing  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("whom", "subject", "told"),
    [
        ("p1:alice", "p1:alice", "same"),
        ("p1:alice", "p1:bob", "other"),
        ("p1:alice", None, "other"),
        (None, "p1:bob", "everyone"),
        (None, None, "everyone"),
    ],
)
def test_facts_say_whether_it_is_the_subjects(whom: str | None, subject: str | None, told: str):
    """Rules compare no pseudonyms: they are told whether it is this subject's, another's, or everyone's."""
    facts = replace(APPROVAL, subject=whom).facts(AT, subject)

    assert facts == {"state": "asked", "model": "m", "action": "train", "purpose": "model-training", "subject": told}
    assert "purpose" not in replace(APPROVAL, purpose=None).facts(AT, subject)


class Life(RuleBasedStateMachine):
    """Steps in any order, by anybody, at any time, against the rules as the issue words them."""

    @initialize()
    def begin(self):
        self.approval, self.now, self.path = APPROVAL, AT, ["asked"]

    @rule(hours=st.integers(0, 400))
    def wait(self, hours):
        self.now += timedelta(hours=hours)

    @rule(answer=st.sampled_from(["approved", "refused"]), name=st.sampled_from(["asker", "other"]), key=st.sampled_from(["k-1", "k-2"]))
    def answer(self, answer, name, key):
        by = principal(name, key)
        may = self.path == ["asked"] and self.now < EXPIRES and name != "asker" and key != "k-1"
        try:
            self.approval.check_answer(by, self.now)
        except (SameAsker, ApprovalEnded):
            assert not may
            return
        assert may
        self.approval = replace(self.approval, state=answer, answered=Step(name, key, self.now, "s1:y"))
        self.path.append(answer)

    @rule()
    def revoke(self):
        may = self.path[-1] == "approved" and self.now < EXPIRES
        try:
            self.approval.check_revocation(self.now)
        except ApprovalEnded:
            assert not may
            return
        assert may
        self.approval = replace(self.approval, state="revoked", revoked=Step("anybody", "k-9", self.now, "s1:z"))
        self.path.append("revoked")

    @invariant()
    def only_known_paths(self):
        assert self.path in (["asked"], ["asked", "approved"], ["asked", "refused"], ["asked", "approved", "revoked"])
        in_force = self.approval.standing(self.now) == "approved"
        assert in_force == (self.path == ["asked", "approved"] and self.now < EXPIRES)
        assert self.approval.answered is None or self.approval.answered.by != self.approval.asked.by


TestLife = Life.TestCase
