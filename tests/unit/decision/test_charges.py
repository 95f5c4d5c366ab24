"""Charges: whose bucket each limit is, and what one request reserves of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auth.keys import Principal
from app.catalog.models import ModelSpec
from app.decision.charges import Buckets, charges
from app.decision.decision import Facts
from app.decision.request import Asking, DecideRequest
from app.limiter.charge import Charge
from app.policy.terms import BUCKETS, Cost, Limit, Terms

CALLER = Principal("k-1", "gw", frozenset({"gateway"}), frozenset({"*"}))
SPEC = ModelSpec(id="m", default_max_tokens=512)
FACTS = Facts("d-1", "r1", 1, 1, 1, degraded=False, node="vllm-0")


def charged(terms: Terms, **fields: object) -> Charge:
    request = DecideRequest.model_validate({"tenant": "a", "model": "m", **fields})
    asking = Asking(request, CALLER, ("k-1", "a", "r"), b"digest")
    return charges(asking, SPEC, terms, Buckets().of(terms, request), FACTS, ttl_ms=30_000)


@pytest.mark.parametrize(
    ("bucket", "subject", "owner"),
    [
        ("site", None, ("site",)),
        ("model", None, ("model", "m")),
        ("tenant", None, ("tenant", "a")),
        ("tenant_model", None, ("tenant_model", "a", "m")),
        ("subject", {"id": "s"}, ("subject", "a", "s")),
        ("subject", {"roles": ["x"]}, ("subject", "a", "")),
        ("subject", None, ("subject", "a", "")),
    ],
)
def test_a_limit_is_held_in_the_bucket_of_whom_it_names(bucket: str, subject: object, owner: tuple[str, ...]):
    """Site, model, tenant, both, or one subject of the tenant; callers who name no subject share one bucket."""
    (one,) = charged(Terms("r", limits=(Limit("q", bucket, "qps", 5.0),)), subject=subject).buckets

    assert (one.kind, one.key) == (bucket, owner)


def test_factors_and_bursts_reach_their_own_dimension():
    """A factor on tokens leaves the rate alone, and a burst stays with its limit."""
    limits = (Limit("q", "tenant", "qps", 5.0, 9.0), Limit("q", "tenant", "tpm", 600.0))
    qps, tpm = charged(Terms("r", limits=limits, factors=(("tpm", 0.5),))).buckets

    assert (qps.limit, qps.burst, qps.factor) == (5.0, 9.0, 1.0)
    assert (tpm.limit, tpm.burst, tpm.factor) == (600.0, None, 0.5)


def test_costs_travel_with_the_lease():
    """What a call costs is fixed when it is admitted, so a settle after a change of prices is fair."""
    charge = charged(Terms("r", cost=Cost(requests=5, input=2, output=3, cached=0.5)))

    assert (charge.requests_cost, charge.input_cost, charge.output_cost, charge.cached_cost) == (5, 2, 3, 0.5)
    assert (charge.scope, charge.tenant, charge.model, charge.request_key) == ("k-1", "a", "m", ("k-1", "a", "r"))


@given(prompt=st.integers(0, 2**53 - 1), most=st.none() | st.integers(0, 2**53 - 1), n=st.integers(1, 128))
def test_what_is_reserved_is_exact(prompt: int, most: int | None, n: int):
    """The prompt once, and each choice's most tokens, the model's 512 where none are named, without rounding."""
    charge = charged(Terms("r"), prompt_tokens=prompt, max_tokens=most, n=n)

    assert (charge.prompt_tokens, charge.max_tokens) == (prompt, n * (512 if most is None else most))


def test_every_kind_of_bucket_has_an_owner_of_its_own():
    """No two kinds share a key, however tenants and models are named."""
    charge = charged(Terms("r", limits=tuple(Limit("q", bucket, "qps", 1.0) for bucket in BUCKETS)), subject={"id": "m"})

    assert len({bucket.key for bucket in charge.buckets}) == len(BUCKETS)
