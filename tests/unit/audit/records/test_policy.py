"""Entries of rules that came into force or were refused."""

from datetime import UTC, datetime

import orjson

from app.audit.records.policy import policy_activated, policy_refused

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_activation_names_what_ran_before():
    """The new revision and the one it replaces; at a start there is none."""
    first, next_ = (orjson.loads(policy_activated(recorded=AT, revision="r2", previous=previous).body) for previous in (None, "r1"))

    assert "previous_revision" not in first
    assert (next_["policy_revision"], next_["previous_revision"]) == ("r2", "r1")


def test_any_problem_can_be_told():
    """Whatever a compiler says, names of files that are no text among it, the entry holds its beginning."""
    made = policy_refused(recorded=AT, problem="a\udcff.rego:1 \x00" + "x" * 10_000, revision=None, previous="r1")
    body = orjson.loads(made.body)

    assert (body["kind"], body["outcome"], body["previous_revision"]) == ("policy.refused", "refused", "r1")
    assert body["problem"] == "a?.rego:1 \ufffd" + "x" * (4000 - 11)
