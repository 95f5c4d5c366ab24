"""Sensitive models over the wire: opened by role and attribute together, and every access in the log before the answer."""

import json
import uuid
from typing import Any

from tests.fixtures.serve import MASKED_MODEL, MODEL, SENSITIVE_MODEL, Serve
from tests.fixtures.waiting import wait_until

ANALYST = {"roles": ["risk-analyst"], "attributes": {"clearance": 3}}


def entries(serve: Serve, decision: dict[str, Any]) -> list[dict[str, Any]]:
    """The log entries of one decision."""
    return [entry for entry in serve.entries() if entry.get("decision_id") == decision["decision_id"]]


def ask(serve: Serve, tenant: str, subject: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A decision on the sensitive model, for credit risk."""
    return serve.decide(tenant, SENSITIVE_MODEL, subject=subject, **{"purpose": "credit-risk", **fields})


def test_an_allowed_access_is_in_the_log_under_a_pseudonym(serve: Serve):
    """The entry stands when the answer arrives; who it was is a pseudonym, the same for the same person, and never the id itself."""
    tenant = serve.tenant(tpm=60_000, region="cn-east")
    person = f"analyst-{uuid.uuid4().hex}@example.org"

    decisions = [ask(serve, tenant, {"id": person, **ANALYST}) for _ in range(2)]

    (first,), (second,) = (entries(serve, decision) for decision in decisions)
    assert decisions[0]["obligations"] == [{"code": "audit", "retention_days": 365}]
    assert ("sensitive.access", "allowed", tenant, SENSITIVE_MODEL, "dev-gateway", "credit-risk") == tuple(
        first[name] for name in ("kind", "outcome", "tenant", "model", "operator", "purpose")
    )
    assert (first["policy_revision"], first["quota_version"]) == (decisions[0]["policy"]["revision"], 1)
    assert first["subject"].startswith("p1:")
    assert first["subject"] == second["subject"]
    assert set(first["sealed"]) == {"subject", "address"}
    assert person not in json.dumps(serve.entries())
    assert person not in serve.log()


def test_the_address_in_the_log_is_the_peers(serve: Serve):
    """What a client writes into forwarding headers changes nothing of the entry: it has the peer's address, as a pseudonym."""
    tenant = serve.tenant(tpm=6000, region="cn-east")
    body = {"tenant": tenant, "model": SENSITIVE_MODEL, "purpose": "credit-risk", "subject": {"id": "a", **ANALYST}}

    plain = serve.call("POST", "/decide", body).json
    forged = serve.call("POST", "/decide", body, x_forwarded_for="203.0.113.9", x_real_ip="203.0.113.9", forwarded="for=203.0.113.9").json

    (first,), (second,) = entries(serve, plain), entries(serve, forged)
    assert first["address"] == second["address"]
    assert first["address"].startswith("p1:")
    assert "127.0.0.1" not in json.dumps(first)


def test_the_same_person_of_two_tenants_has_two_pseudonyms(serve: Serve):
    """Pseudonyms do not link the people of one tenant with those of another."""
    first, second = (ask(serve, serve.tenant(tpm=6000, region="cn-east"), {"id": "the same", **ANALYST}) for _ in range(2))

    assert entries(serve, first)[0]["subject"] != entries(serve, second)[0]["subject"]


def test_a_refused_access_is_in_the_log_with_its_reasons(serve: Serve):
    """Role and attribute must both agree; a refusal is 403, names every reason, spends nothing, and is logged."""
    tenant = serve.tenant(tpm=60_000, concurrency=1, region="cn-east")

    decision = ask(serve, tenant, {"id": "clerk", "roles": ["clerk"], "attributes": {"clearance": 2}}, purpose="marketing")

    codes = {"sensitive_role", "sensitive_clearance", "sensitive_purpose"}
    assert (decision["allow"], decision["status"]) == (False, 403)
    assert codes == {reason["code"] for reason in decision["reasons"]}
    (entry,) = entries(serve, decision)
    assert ("sensitive.access", "refused", codes) == (entry["kind"], entry["outcome"], {reason["code"] for reason in entry["reasons"]})
    assert serve.leases(tenant) == []


def test_a_tenant_elsewhere_is_refused(serve: Serve):
    """The region is the tenant's own, which no attribute of a caller lifts."""
    tenant = serve.tenant(tpm=6000, region="eu-west")

    decision = ask(serve, tenant, {"id": "a", "roles": ["risk-analyst"], "attributes": {"clearance": 3, "region": "cn-east"}})

    assert {"sensitive_region"} == {reason["code"] for reason in decision["reasons"]}


def test_every_refusal_by_policy_is_in_the_log(serve: Serve):
    """A 403 of an ordinary model leaves an entry, an ordinary admission and a 429 leave none."""
    tenant = serve.tenant(concurrency=1)
    admitted, full = serve.decide(tenant), serve.decide(tenant)
    unknown = serve.decide(tenant, "no-such-model", subject={"id": "somebody-in-clear"})

    assert [entries(serve, admitted), entries(serve, full)] == [[], []]
    (entry,) = entries(serve, unknown)
    assert (entry["kind"], entry["reasons"]) == ("policy.refusal", [{"code": "unknown_model", "rule": "known"}])
    assert "somebody-in-clear" not in json.dumps(entry)
    assert entry["model"] != MODEL


def test_a_replay_is_not_logged_twice(serve: Serve):
    """The same request id is one access."""
    tenant = serve.tenant(tpm=6000, region="cn-east")
    first, again = (ask(serve, tenant, {"id": "a", **ANALYST}, request_id="r1") for _ in range(2))

    assert again["replayed"]
    assert len(entries(serve, first)) == 1


def test_a_quota_change_is_in_the_log_with_its_operator(serve: Serve):
    """Each change of a quota leaves one entry with version, difference and sealed reason, by the name of the key that made it."""
    tenant = serve.tenant(qps=5)
    serve.call("PATCH", f"/quotas/{tenant}", {"qps": 6, "reason": "more"}, key="admin", if_match='"1"', x_tenant="forged")

    told = [entry for entry in serve.entries() if entry["tenant"] == tenant]
    assert [(entry["kind"], entry["operator"], entry["quota_version"], set(entry.get("sealed", ()))) for entry in told] == [
        ("quota.in_force", "dev-operator", 1, set()),
        ("quota.in_force", "dev-admin", 2, {"reason"}),
    ]


def unconfirmed(serve: Serve, tenant: str) -> dict[str, Any]:
    """A decision that lets a data steward train, and obliges the gateway to mask."""
    steward = {"id": "steward@example.org", "roles": ["data-steward"]}
    return serve.decide(tenant, MASKED_MODEL, subject=steward, action="train", purpose="model-training")


def test_an_access_is_unconfirmed_until_the_gateway_confirms_it(serve: Serve):
    """An obligation that only the gateway can meet leaves the access unconfirmed; its settlement confirms it, once."""
    decision = unconfirmed(serve, serve.tenant(tpm=60_000))
    assert [(entry["outcome"], entry["obligations"]) for entry in entries(serve, decision)] == [("unconfirmed", ["mask"])]

    for _ in range(2):
        assert serve.lease(decision, "settle", prompt_tokens=1, completion_tokens=1, obligations_met=["mask"]).status == 200

    access, confirmed = entries(serve, decision)
    assert (confirmed["kind"], confirmed["outcome"], confirmed["obligations_met"]) == ("sensitive.access", "confirmed", ["mask"])
    assert confirmed["subject"] == access["subject"]
    assert (access["action"], access["purpose"]) == ("train", "model-training")


def test_an_access_that_is_settled_without_its_obligations_is_an_incident(serve: Serve):
    """The settlement is taken, what is owed stands in its answer, and soon the log says that nobody confirmed."""
    decision = unconfirmed(serve, serve.tenant(tpm=60_000))

    settled = serve.lease(decision, "settle", prompt_tokens=1, completion_tokens=1, obligations_met=["masking"]).json

    assert (settled["freed"], settled["flags"], settled["obligations_owed"]) == (True, ["unknown_obligation"], ["mask"])
    wait_until(lambda: len(entries(serve, decision)) > 1)
    assert [entry["outcome"] for entry in entries(serve, decision)] == ["unconfirmed", "unmet"]


def test_nothing_that_says_who_stands_in_clear(serve: Serve):
    """After traffic with ids, addresses, purposes and reasons of people, none of these is in any column of any table of the log."""
    secret = uuid.uuid4().hex
    said = [f"{name}.{secret}@example.org" for name in ("subject", "purpose", "action", "approval", "reason", "refused")]
    subject, purpose, action, approval, reason, refused = said
    tenant = serve.tenant(tpm=60_000, region="cn-east")
    ask(serve, tenant, {"id": subject, **ANALYST})
    ask(serve, tenant, {"id": subject, **ANALYST}, purpose=purpose, action=action, approval_id=approval)
    serve.decide(tenant, "no-such-model", subject={"id": refused}, purpose=purpose)
    serve.call("PATCH", f"/quotas/{tenant}", {"tpm": 50_000, "reason": reason}, key="operator", if_match='"1"')
    serve.call("DELETE", f"/quotas/{tenant}", {"reason": reason}, key="operator", if_match='"2"')

    tables = [name for (name,) in serve.sql("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'audit'")]
    tables.append("registry.subject_key")
    dump = "\n".join(str(row) for table in tables for row in serve.sql(f"SELECT {table.split('.')[1]}::text FROM {table}"))  # noqa: S608 - ours
    texts = json.dumps([*serve.entries(), dump])

    assert [word for word in (secret, secret.encode().hex(), "127.0.0.1", b"127.0.0.1".hex()) if word in texts] == []
    assert tenant in texts
