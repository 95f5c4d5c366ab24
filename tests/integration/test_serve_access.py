"""Who may ask for what, over the wire: credentials, roles, tenants, and names that look like something else."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from app.auth.keys import Keys
from app.clock import ManualClock
from app.database import create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.serve import MODEL, Serve, new_key
from tests.fixtures.waiting import wait_until


@pytest.fixture(scope="module")
def own_tenant(serve: Serve) -> Iterator[str]:
    """A tenant with a gateway key, named `own`, that may speak for it alone."""
    name = serve.tenant(tpm=60_000, concurrency=10)
    new_key(serve, "own", "--role", "gateway", "--tenant", name)
    wait_until(lambda: serve.call("GET", f"/usage/{name}", key="own").status == 200)
    yield name
    serve.keys.pop("own")


async def expired_key(serve: Serve) -> str:
    """A key whose day has passed, made by a clock of two days ago."""
    then = ManualClock(datetime.now(UTC) - timedelta(days=2))
    engine = create_engine(serve.database_urls.registry, DatabaseSettings())
    keys = Keys(engine, then, Metrics(), timeout_ms=TIMEOUT_MS)
    created = await keys.create(
        name=f"expired-{id(then)}", roles=["gateway"], tenants=["*"], expires=then.utcnow() + timedelta(days=1), operator="test"
    )
    await engine.dispose()
    return created.text


@pytest.mark.parametrize("key", [None, "", "sluice_", "sluice_" + "A" * 43, "Ünïcode", "A" * 10_000])
@pytest.mark.parametrize("target", ["/decide", "/decide/batch", "/leases/x/settle", "/quotas/a", "/leases", "/telemetry", "/usage/a"])
def test_without_a_good_key_nothing_is_answered(serve: Serve, key: str | None, target: str):
    """A missing or unknown key is 401 with a challenge, before anything else is looked at; the key is not repeated."""
    method = "POST" if target.startswith(("/decide", "/leases/")) else "GET"
    header = {} if key is None else {"authorization": f"Bearer {key}"}

    reply = serve.call(method, target, None if method == "GET" else b"{", key=None, **header)

    assert (reply.status, reply.json["code"], reply.headers["www-authenticate"]) == (401, "unauthorized", "Bearer")
    assert not key or len(key) < 8 or key.encode() not in reply.body


def test_a_revoked_and_an_expired_key_open_nothing(serve: Serve):
    """A key made on the command line is in force at once, and out of force once it is revoked; an expired one is 401 too."""
    new_key(serve, "passing", "--role", "gateway", "--tenant", "*")
    wait_until(lambda: serve.call("GET", "/usage/tenant-prod-a", key="passing").status == 200)

    serve.command("key", "revoke", "passing")

    wait_until(lambda: serve.call("GET", "/usage/tenant-prod-a", key="passing").status == 401)
    expired = asyncio.run(expired_key(serve))
    wait_until(lambda: "expired" in serve.call("GET", "/usage/tenant-prod-a", key=expired).json["detail"])
    assert serve.call("POST", "/decide", {"tenant": "tenant-prod-a", "model": MODEL}, key=expired).status == 401


@pytest.mark.parametrize(
    ("role", "method", "target", "document"),
    [
        ("auditor", "POST", "/decide", {"tenant": "a", "model": "m"}),
        ("operator", "POST", "/decide", {"tenant": "a", "model": "m"}),
        ("approver", "POST", "/decide/batch", {"requests": [{"tenant": "a", "model": "m"}]}),
        ("auditor", "POST", "/leases/x/settle", {}),
        ("auditor", "POST", "/leases/x/renew", {}),
        ("auditor", "POST", "/leases/x/cancel", {}),
        ("gateway", "PUT", "/quotas/a", {"qps": 1}),
        ("gateway", "PATCH", "/quotas/a", {"qps": 1}),
        ("gateway", "DELETE", "/quotas/a", None),
        ("gateway", "GET", "/quotas/a/history", None),
        ("gateway", "GET", "/leases", None),
        ("auditor", "DELETE", "/leases/x", None),
        ("approver", "PUT", "/quotas/a", {"qps": 1}),
    ],
)
def test_each_call_needs_its_role(serve: Serve, role: str, method: str, target: str, document: Any):
    """A good key of another role is 403, naming the role that is needed."""
    reply = serve.call(method, target, document, key=role)

    assert (reply.status, reply.json["code"]) == (403, "forbidden")
    assert "needs" in reply.json["detail"]


def test_a_gateway_speaks_for_its_own_tenants_alone(serve: Serve, own_tenant: str):
    """A body that names another tenant is 403 and charges nobody; one foreign item refuses a whole batch."""
    other = serve.tenant(tpm=1000)
    foreign, fine = {"tenant": other, "model": MODEL}, {"tenant": own_tenant, "model": MODEL}

    single = serve.call("POST", "/decide", foreign, key="own")
    batch = serve.call("POST", "/decide/batch", {"requests": [fine, foreign]}, key="own")
    usage = serve.call("GET", f"/usage/{other}", key="own")

    assert [(reply.status, reply.json["code"], reply.json["field"]) for reply in (single, batch, usage)] == [
        (403, "forbidden", "tenant")
    ] * 3
    assert serve.leases(other) + serve.leases(own_tenant) == []


def test_headers_of_the_client_decide_nothing(serve: Serve, own_tenant: str):
    """Headers that name another tenant or another address change neither who is charged nor who may end the lease."""
    other = serve.tenant(tpm=1000, concurrency=1)
    forged = {
        "x_tenant": other,
        "x_forwarded_for": "203.0.113.9",
        "x_real_ip": "203.0.113.9",
        "forwarded": "for=203.0.113.9",
        "x_role": "admin",
    }

    decision = serve.call("POST", "/decide", {"tenant": own_tenant, "model": MODEL}, key="own", **forged).json

    assert [decision["decision_id"]] == serve.leases(own_tenant)
    assert serve.leases(other) == []
    assert serve.call("GET", "/leases", key="own", **forged).status == 403
    serve.lease(decision, "cancel", key="own")


def test_a_request_id_of_the_caller_comes_back(serve: Serve):
    """X-Request-Id is answered with every reply, errors too, unless it could do harm in a header or a log."""
    assert serve.call("GET", "/quotas/nobody", key="operator", x_request_id="abc-1").headers["x-request-id"] == "abc-1"
    assert serve.call("POST", "/decide", b"{", x_request_id="abc-2").headers["x-request-id"] == "abc-2"
    assert "x-request-id" not in serve.call("POST", "/decide", b"{", x_request_id="a" * 129).headers


HARMLESS = ["a/b", "a/history", "a%2Fb", "..%2Fx", "a?b#c", "a b", "é", "租户", 'acme"x\\y{}', "<img src=x>", "A", "a;b=c", "..a"]


@pytest.mark.parametrize("name", HARMLESS)
def test_a_name_with_special_characters_is_one_name(serve: Serve, name: str):
    """Whatever stands in a name, each path that holds it answers for that very tenant, and decisions spend its own budget."""
    path = quote(name, safe="")
    made = serve.call("PUT", f"/quotas/{path}", {"tpm": 6000, "reason": "test"}, key="operator")
    decision = serve.decide(name, prompt_tokens=1000, max_tokens=0)

    assert (name, 5000) == (made.json["tenant"], decision["limits"]["tpm"]["remaining"])
    assert name == serve.call("GET", f"/quotas/{path}", key="operator").json["tenant"]
    assert name == serve.call("GET", f"/quotas/{path}/history", key="operator").json["tenant"]
    (bucket,) = serve.call("GET", f"/usage/{path}", key="operator").json["buckets"]
    assert bucket["key"] == [name]
    assert [decision["decision_id"]] == [
        lease["lease_id"] for lease in serve.call("GET", f"/leases?tenant={path}", key="operator").json["leases"]
    ]
    assert serve.call("DELETE", f"/quotas/{path}", key="operator", if_match='"1"').status == 204


@pytest.mark.parametrize("name", ["", ".", "..", "*", " a", "a ", "a\u200bb", "a\nb", "\u202ea", "x" * 129, "x" * 10_000, "\ufeffa"])
def test_names_that_look_like_another_are_refused(serve: Serve, name: str):
    """Empty, over-long, invisible, padded names and steps of a path are 400 in bodies and paths, and nothing is decided."""
    body = serve.call("POST", "/decide", {"tenant": name, "model": MODEL})
    path = serve.call("PUT", f"/quotas/{quote(name, safe='')}", {"qps": 1}, key="operator")

    assert (body.status, body.json["field"]) == (400, "tenant")
    assert path.status in (400, 404, 405, 414)  # an empty name leaves the path of the list; the longest is no URL


def test_composed_and_decomposed_names_share_one_bucket(serve: Serve):
    """The same name in two Unicode forms is one tenant; capitals, full-width letters and ß stay other names."""
    serve.call("PUT", f"/quotas/{quote('café')}", {"tpm": 600}, key="operator")

    composed = serve.decide("caf\u00e9", max_tokens=100)
    decomposed = serve.decide("cafe\u0301", max_tokens=100)

    assert tuple(decision["limits"]["tpm"]["remaining"] // 100 * 100 for decision in (composed, decomposed)) == (500, 400)
    assert {403} == {serve.decide(name)["status"] for name in ("CAFÉ", "ｃａｆé", "straße", "STRASSE")}
