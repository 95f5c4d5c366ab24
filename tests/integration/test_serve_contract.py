"""The contract of decisions over the wire."""

from tests.fixtures.serve import MODEL, Serve


def test_a_decision_has_every_field_of_the_contract(serve: Serve):
    """An admitted request is answered with lease, limits, headers, policy and telemetry, each of the documented shape."""
    tenant = serve.tenant(qps=50, tpm=30000, concurrency=8)

    decision = serve.decide(tenant, MODEL, prompt_tokens=200, max_tokens=100)

    assert decision["allow"] is True
