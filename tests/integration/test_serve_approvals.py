"""A model that needs an approval, over the wire: closed until somebody else approves, open with masking, closed again at once."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.instants import rfc3339
from tests.fixtures.serve import Serve
from tests.fixtures.waiting import wait_until

MODEL = "mdl-pii-classifier"
STEWARD = {"id": "steward@example.org", "roles": ["data-steward"]}
SEEN_WITHIN_S = 2.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "requests" / "approved.json"


def approval(serve: Serve, tenant: str, *, key: str = "operator", ends_in_s: float = 3600, **changes: Any) -> str:
    """The id of an approval that was asked for the steward to train."""
    wish = {
        "tenant": tenant,
        "model": MODEL,
        "action": "train",
        "purpose": "model-training",
        "subject_id": STEWARD["id"],
        "reason": "quarterly",
    }
    expires = rfc3339(datetime.now(UTC) + timedelta(seconds=ends_in_s))
    reply = serve.call("POST", "/approvals", wish | {"expires": expires} | changes, key=key)
    assert reply.status == 201, reply.body
    return str(reply.json["id"])


def step(serve: Serve, identity: str, verb: str, *, key: str = "approver") -> int:
    return serve.call("POST", f"/approvals/{identity}/{verb}", {"reason": "seen"}, key=key).status


def train(serve: Serve, tenant: str, approval_id: str | None = None, **changes: Any) -> Any:
    """A decision on training as the steward."""
    named = {} if approval_id is None else {"approval_id": approval_id}
    return serve.decide(tenant, MODEL, **{"subject": STEWARD, "action": "train", "purpose": "model-training"} | named | changes)


def codes(decision: Any) -> set[str]:
    assert (decision["allow"], decision["status"]) == (False, 403), decision
    return {reason["code"] for reason in decision["reasons"]}


def entries(serve: Serve, decision: Any) -> list[Any]:
    return [entry for entry in serve.entries() if entry.get("decision_id") == decision["decision_id"]]


@pytest.fixture(scope="module")
def tenant(serve: Serve) -> str:
    return serve.tenant(tpm=1_000_000)


def test_it_is_closed_until_somebody_else_approves(serve: Serve, tenant: str):
    """No approval, an unanswered one: 403 with a code each; then open, with masking, and unconfirmed."""
    assert codes(train(serve, tenant)) == {"approval_required"}
    assert codes(train(serve, tenant, "no-such-approval")) == {"approval_required"}
    identity = approval(serve, tenant)
    assert codes(train(serve, tenant, identity)) == {"approval_pending"}
    assert step(serve, identity, "approve") == 200

    decision = train(serve, tenant, identity)

    assert decision["allow"]
    assert {obligation["code"] for obligation in decision["obligations"]} == {"audit", "mask"}
    assert [fields for fields in (one.get("fields") for one in decision["obligations"]) if fields] == [["id_number", "name", "phone"]]
    (access,) = entries(serve, decision)
    assert (access["outcome"], access["approval_id"], access["obligations"]) == ("unconfirmed", identity, ["mask"])


def test_the_example_rests_on_an_approval(serve: Serve, tenant: str):
    """The example request opens the model with the id of an approval in its place, and with that place alone it does not."""
    identity = approval(serve, tenant)
    step(serve, identity, "approve")
    example = EXAMPLE.read_text("utf-8")
    named, unnamed = (json.loads(text) | {"tenant": tenant} for text in (example.replace("APPROVAL_ID", identity), example))

    assert serve.call("POST", "/decide", named).json["allow"]
    assert codes(serve.call("POST", "/decide", unnamed).json) == {"approval_required"}


def test_it_opens_what_it_says_and_nothing_else(serve: Serve, tenant: str):
    """Another subject, none at all, another tenant, another model: each refused; one for everyone opens for everyone of its tenant."""
    identity, everyone = approval(serve, tenant), approval(serve, tenant, subject_id=None, everyone=True)
    for one in (identity, everyone):
        assert step(serve, one, "approve") == 200
    somebody = {"id": "somebody@example.org", "roles": ["data-steward"]}

    assert codes(train(serve, tenant, identity, subject=somebody)) == {"approval_mismatch"}
    assert codes(train(serve, tenant, identity, subject={"roles": ["data-steward"]})) == {"approval_mismatch"}
    assert codes(train(serve, serve.tenant(tpm=60_000), identity)) == {"approval_required"}
    assert codes(train(serve, tenant, identity, purpose="marketing")) == {"approval_mismatch", "sensitive_purpose"}
    assert train(serve, tenant, everyone, subject=somebody)["allow"]
    assert codes(train(serve, tenant, identity, subject=STEWARD | {"roles": ["clerk"]})) == {"sensitive_role"}


def test_its_time_ends_it(serve: Serve, tenant: str):
    """What was approved is refused from the instant of its end, without anybody doing anything."""
    identity = approval(serve, tenant, ends_in_s=0.7)
    step(serve, identity, "approve")
    wait_until(lambda: not train(serve, tenant, identity)["allow"], 10)

    assert codes(train(serve, tenant, identity)) == {"approval_expired"}
    assert step(serve, identity, "revoke") == 409


def test_an_access_that_is_not_confirmed_is_an_incident(serve: Serve, tenant: str):
    """Settled without the obligation: an incident within seconds; confirmed later: told after it. Confirmed in time or unused: none."""
    identity = approval(serve, tenant)
    step(serve, identity, "approve")
    late, met, unused = (train(serve, tenant, identity) for _ in range(3))
    assert serve.lease(late, "settle", prompt_tokens=1).status == 200
    assert serve.lease(met, "settle", prompt_tokens=1, obligations_met=["mask"]).status == 200
    assert serve.lease(unused, "cancel").status == 200

    wait_until(lambda: min(len(entries(serve, one)) for one in (late, met, unused)) == 2, 10)
    assert serve.lease(late, "settle", prompt_tokens=1, obligations_met=["mask"]).status == 200

    told = [[(entry["kind"], entry["outcome"]) for entry in entries(serve, one)] for one in (late, met, unused)]
    assert told == [
        [("sensitive.access", "unconfirmed"), ("obligation.unmet", "unmet"), ("sensitive.access", "confirmed")],
        [("sensitive.access", "unconfirmed"), ("sensitive.access", "confirmed")],
        [("sensitive.access", "unconfirmed"), ("sensitive.access", "cancelled")],
    ]
    _, incident, confirmed = entries(serve, late)
    assert (incident["reason"], incident["obligations"], incident["approval_id"]) == ("settled", ["mask"], identity)
    assert confirmed["approval_id"] == identity


def test_two_replicas_close_at_once_and_the_end_tells_what_is_owed(serve: Serve, tenant: str, start_serve: Any):
    """A revocation on one replica refuses on both; an orderly end of one is an incident for what runs there."""
    urls = serve.database_urls
    second = start_serve(
        database={"url": urls.registry, "owner_url": urls.owner, "intake_url": urls.intake, "log_url": urls.log}, lease={"ttl_ms": 600_000}
    )
    identity = approval(serve, tenant)
    step(serve, identity, "approve")
    wait_until(lambda: train(second, tenant, identity)["allow"], SEEN_WITHIN_S)
    running = train(second, tenant, identity)

    assert step(serve, identity, "revoke", key="operator") == 200
    assert codes(train(serve, tenant, identity)) == {"approval_revoked"}
    wait_until(lambda: not train(second, tenant, identity)["allow"], SEEN_WITHIN_S)
    assert codes(train(second, tenant, identity)) == {"approval_revoked"}

    assert second.stop() == 0
    assert [(entry["kind"], entry.get("reason")) for entry in entries(serve, running)] == [
        ("sensitive.access", None),
        ("obligation.unmet", "stopped"),
    ]
