"""Sensitive models over the wire: opened by role and attribute together, and every access in the log before the answer."""

import json
import uuid
from typing import Any

from tests.fixtures.serve import MODEL, SENSITIVE_MODEL, Serve

ANALYST = {"roles": ["risk-analyst"], "attributes": {"clearance": 3}}


def entries(serve: Serve, decision: dict[str, Any]) -> list[dict[str, Any]]:
    """The log entries of one decision."""
    rows = serve.sql("SELECT body FROM audit.intake")
    bodies = [json.loads(bytes(body)) for (body,) in rows]
    return [body for body in bodies if body.get("decision_id") == decision["decision_id"]]


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
    assert serve.sql("SELECT count(*) FROM audit.intake WHERE position(%s in convert_from(body, 'UTF8')) > 0", person)[0][0] == 0
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
    """Each change of a quota leaves one entry with version, difference and reason, by the name of the key that made it."""
    tenant = serve.tenant(qps=5)
    serve.call("PATCH", f"/quotas/{tenant}", {"qps": 6, "reason": "more"}, key="admin", if_match='"1"', x_tenant="forged")

    bodies = [json.loads(bytes(body)) for (body,) in serve.sql("SELECT body FROM audit.intake")]
    told = [(body["kind"], body["operator"], body["quota_version"], body["reason"]) for body in bodies if body["tenant"] == tenant]
    assert sorted(told, key=lambda line: line[2]) == [("quota.in_force", "dev-operator", 1, ""), ("quota.in_force", "dev-admin", 2, "more")]
