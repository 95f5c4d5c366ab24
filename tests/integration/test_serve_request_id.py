"""Request ids over the wire: one charge for one request, however often it is sent."""

from tests.fixtures.serve import MODEL, Serve


def test_the_same_request_gets_the_same_decision(serve: Serve):
    """A repeated request id is answered from the record, marked as replayed, and charged once."""
    tenant = serve.tenant(tpm=60_000, concurrency=5)
    first = serve.decide(tenant, max_tokens=100, request_id="r1")
    again = serve.decide(tenant, max_tokens=100, request_id="r1")

    assert (first.pop("replayed"), again.pop("replayed")) == (False, True)
    assert first == again
    assert [first["decision_id"]] == serve.leases(tenant)


def test_the_record_outlives_the_lease(serve: Serve):
    """A settled request is still answered from its record: the gateway must not start it again."""
    tenant = serve.tenant(concurrency=1)
    first = serve.decide(tenant, request_id="r1")
    serve.lease(first, "settle")

    again = serve.decide(tenant, request_id="r1")

    assert (first["decision_id"], True) == (again["decision_id"], again["replayed"])


def test_another_body_under_the_same_id_is_a_conflict(serve: Serve):
    """An id that comes with another body is 409 and charges nothing; the order of the fields makes no other body."""
    tenant = serve.tenant(concurrency=5)
    first = serve.decide(tenant, max_tokens=100, request_id="r1")

    other = serve.call("POST", "/decide", {"tenant": tenant, "model": MODEL, "max_tokens": 101, "request_id": "r1"})
    reordered = serve.call("POST", "/decide", {"request_id": "r1", "max_tokens": 100, "model": MODEL, "tenant": tenant})

    assert (other.status, other.json["code"], other.json["field"]) == (409, "request_id_reused", "request_id")
    assert first["decision_id"] == reordered.json["decision_id"]
    assert len(serve.leases(tenant)) == 1


def test_a_refusal_is_decided_anew(serve: Serve):
    """A refused request id is free: once there is room the same request passes."""
    tenant = serve.tenant(concurrency=1)
    holder = serve.decide(tenant)
    refused = serve.decide(tenant, request_id="r1")
    serve.lease(holder, "settle")

    admitted = serve.decide(tenant, request_id="r1")

    assert (refused["allow"], admitted["allow"], admitted["replayed"]) == (False, True, False)


def test_a_cancelled_request_is_decided_anew(serve: Serve):
    """What was cancelled never started, so its id gives a fresh decision."""
    tenant = serve.tenant(concurrency=1)
    first = serve.decide(tenant, request_id="r1")
    serve.lease(first, "cancel")

    again = serve.decide(tenant, request_id="r1")

    assert again["allow"]
    assert not again["replayed"]
    assert first["decision_id"] != again["decision_id"]


def test_two_at_the_same_moment_are_charged_once(serve: Serve):
    """Eight calls with one id at once give one lease; seven of them are replays of the eighth."""
    tenant = serve.tenant(tpm=10_000, concurrency=8)
    body = {"tenant": tenant, "model": MODEL, "max_tokens": 100, "request_id": "r1"}

    replies = [reply.json for reply in serve.at_once([("POST", "/decide", body)] * 8)]

    assert len({reply["decision_id"] for reply in replies}) == 1
    assert sum(reply["replayed"] for reply in replies) == 7
    assert len(serve.leases(tenant)) == 1


def test_an_id_belongs_to_its_credential_and_tenant(serve: Serve):
    """The same id of another key or another tenant is another request."""
    tenant, other = serve.tenant(), serve.tenant()
    ids = {
        serve.decide(tenant, request_id="r1")["decision_id"],
        serve.decide(other, request_id="r1")["decision_id"],
        serve.decide(tenant, request_id="r1", key="admin")["decision_id"],
    }

    assert len(ids) == 3


def test_one_batch_may_hold_the_same_id_twice(serve: Serve):
    """A batch that names one id twice gets the decision and its replay."""
    tenant = serve.tenant(concurrency=5)
    items = [{"tenant": tenant, "model": MODEL, "request_id": "r1"}] * 2

    decisions = serve.call("POST", "/decide/batch", {"requests": items}).json["decisions"]

    assert [decision["replayed"] for decision in decisions] == [False, True]
    assert len(serve.leases(tenant)) == 1
