"""Bad input over the wire: refused with a valid problem that names the field, and nothing charged or written."""

import gzip
import json
from typing import Any

import pytest

from tests.fixtures.serve import MODEL, Serve

FIELDS = ("prompt_tokens", "max_tokens", "n")
NOT_COUNTS = [
    "NaN",
    "Infinity",
    "-Infinity",
    '"NaN"',
    "1e999",
    "-1",
    "1.5",
    "true",
    '"12"',
    "[]",
    "{}",
    "9007199254740993",
    "9007199254740992",
    "0.1e1",
]


@pytest.fixture(scope="module")
def tenant(serve: Serve) -> str:
    """A tenant whose budget nobody touches."""
    return serve.tenant(tpm=1000, qps=1000, concurrency=10)


def is_refused(serve: Serve, tenant: str, body: bytes, target: str = "/decide") -> dict[str, Any]:
    """The problem of a body that is refused; nothing was charged for it."""
    reply = serve.call("POST", target, body)
    document = json.loads(reply.body, parse_constant=lambda text: pytest.fail(f"{text} in an answer"))
    assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json")
    assert {"type", "title", "status", "detail", "code", "hint"} <= set(document)
    assert serve.leases(tenant) == []
    assert serve.remaining(tenant).get("tpm", 1000) == 1000
    return document


@pytest.mark.parametrize("value", NOT_COUNTS)
@pytest.mark.parametrize("field", FIELDS)
def test_what_is_no_count_is_refused(serve: Serve, tenant: str, field: str, value: str):
    """NaN, infinities, texts, fractions, negatives, booleans and integers that doubles change are never taken for a count."""
    body = f'{{"tenant": "{tenant}", "model": "{MODEL}", "{field}": {value}}}'

    problem = is_refused(serve, tenant, body.encode())

    assert problem["code"] == "bad_request"


def test_the_largest_exact_count_is_taken_as_it_is(serve: Serve, tenant: str):
    """2^53 - 1 tokens keep every digit up to the refusal."""
    decision = serve.decide(tenant, prompt_tokens=0, max_tokens=2**53 - 1)

    assert {reason["observed"] for reason in decision["reasons"]} == {2**53 - 1}
    assert {reason["code"] for reason in decision["reasons"]} == {"over_capacity", "request_tokens_exceeded"}


@pytest.mark.parametrize(
    "body",
    [
        '{"tenant": "a", "tenant": "TENANT", "model": "m"}',
        '{"tenant": "TENANT", "model": "m", "max_tokens": 1, "max_tokens": 9999}',
        '{"tenant": "TENANT", "model": "m", "subject": {"roles": ["a"], "roles": ["b"]}}',
        '{"tenant": "TENANT", "model": "m", "subject": {"attributes": {"clearance": 1, "clearance": 9}}}',
        r'{"tenant": "a", "\u0074enant": "TENANT", "model": "m"}',
    ],
)
def test_a_key_that_stands_twice_is_refused(serve: Serve, tenant: str, body: str):
    """A key twice, at any depth and however it is spelt, is refused in a decision, in a batch and in a quota."""
    sent = body.replace("TENANT", tenant)

    assert is_refused(serve, tenant, sent.encode())["code"] == "duplicate_key"
    assert is_refused(serve, tenant, f'{{"requests": [{sent}]}}'.encode(), "/decide/batch")["code"] == "duplicate_key"


@pytest.mark.parametrize("body", [b'{"qps": 1, "qps": 2}', b'{"costs": {"m": 1, "m": 2}}'])
def test_a_quota_with_a_key_twice_changes_nothing(serve: Serve, tenant: str, body: bytes):
    """A patch that names a key twice is refused, and the version stays."""
    reply = serve.call("PATCH", f"/quotas/{tenant}", body, key="operator", if_match='"1"')

    assert (reply.status, reply.json["code"]) == (400, "duplicate_key")
    assert serve.call("GET", f"/quotas/{tenant}", key="operator").json["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe",
        b'{"tenant": "\xff"}',
        b'{"tenant": "a", "model": "m"} {}',
        b'{"tenant": "a\\u0000b", "model": "m"}',
        b'{"tenant": "\\ud800", "model": "m"}',
        b'{"tenant": "a", "model": "m", "deep": ' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"tenant": "a", "model": "m", "deep": ' + b"[" * 30_000,
        b'{"tenant": 1, "model": "m"}',
        b'{"model": "m"}',
        b'{"tenant": "a"}',
        b'{"tenant": "a", "model": "m", "priority": "P9"}',
        b'{"tenant": "a", "model": "m", "subject": "s"}',
        b'{"tenant": "a", "model": "m", "subject": {"roles": "risk-analyst"}}',
        b'{"tenant": "a", "model": "m", "request_id": ""}',
        b'{"tenant": "a", "model": "m", "stream": "yes"}',
    ],
)
def test_a_body_that_is_not_a_request_is_refused(serve: Serve, tenant: str, body: bytes):
    """Other shapes, broken text, depth beyond 64 and wrong types are each a 400 that says what is wrong."""
    assert is_refused(serve, tenant, body)["detail"]


def test_a_large_body_is_refused_at_its_limit(serve: Serve):
    """64 KiB pass and one byte more does not; a batch has 256 KiB."""
    head = f'{{"tenant": "{serve.tenant()}", "model": "{MODEL}", "padding": "'
    fits = head.encode() + b"x" * (64 * 1024 - len(head) - 2) + b'"}'

    assert [serve.call("POST", "/decide", body).status for body in (fits, fits + b" ")] == [200, 413]
    assert [serve.call("POST", "/decide/batch", b" " * (256 * 1024 + more)).status for more in (0, 1)] == [400, 413]
    assert serve.call("PUT", "/quotas/a", fits + b" ", key="operator").status == 413


def test_a_compressed_body_is_not_unfolded(serve: Serve):
    """A body with a Content-Encoding is 415, whatever it would unfold to."""
    bomb = gzip.compress(b" " * 10_000_000)

    assert serve.call("POST", "/decide", bomb, content_encoding="gzip").status == 415


@pytest.mark.parametrize(
    ("method", "target", "allow"),
    [
        ("GET", "/decide", {"POST"}),
        ("PUT", "/decide/batch", {"POST"}),
        ("DELETE", "/leases/x/settle", {"POST"}),
        ("POST", "/healthz", {"GET"}),
        ("POST", "/leases", {"GET"}),
        ("GET", "/leases/x", {"DELETE"}),
        ("POST", "/quotas/a%2Fb", {"GET", "PUT", "PATCH", "DELETE"}),
    ],
)
def test_another_method_is_405_and_names_the_right_ones(serve: Serve, method: str, target: str, allow: set[str]):
    """A route asked by a method that it does not have is 405 and says which it has."""
    reply = serve.call(method, target)

    assert (reply.status, reply.json["code"]) == (405, "method_not_allowed")
    assert set(reply.headers["allow"].split(", ")) == allow


def test_an_unknown_route_is_a_problem_too(serve: Serve):
    """A path that does not exist is 404 in the same form as every error."""
    reply = serve.call("GET", "/nothing/here")

    assert (reply.status, reply.json["code"], reply.headers["content-type"]) == (404, "not_found", "application/problem+json")


@pytest.mark.parametrize("weight", ["0.30000000000000004", "18446744073709551617", "1e-7", "1e400", "NaN", "-1", '"2"'])
def test_a_weight_keeps_its_digits_or_is_refused(serve: Serve, weight: str):
    """A number that rules or log could not keep digit for digit is refused at the edge, never rounded."""
    reply = serve.call("PUT", "/quotas/weights", f'{{"costs": {{"m": {weight}}}}}'.encode(), key="operator")

    assert reply.status == 400


def test_exact_decimals_stay_exact_everywhere(serve: Serve):
    """A weight of 0.3 is 0.3 in the quota, in its history and in what a call is charged."""
    tenant = serve.tenant(tpm=6000, costs={MODEL: 0.3})

    decision = serve.decide(tenant, prompt_tokens=1000, max_tokens=1000)

    assert serve.call("GET", f"/quotas/{tenant}", key="operator").json["costs"] == {MODEL: 0.3}
    history = serve.call("GET", f"/quotas/{tenant}/history", key="operator").json
    assert history["versions"][0]["after"]["costs"] == [{"model": MODEL, "value": "0.3"}]
    assert decision["limits"]["tpm"]["remaining"] == 5400  # 2000 x 0.3 = 600
