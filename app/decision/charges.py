"""From a request and its terms to what it spends: one bucket per limit, owned by whom the limit names."""

from app.catalog.models import ModelSpec
from app.decision.request import Asking, DecideRequest
from app.limiter.charge import Bucket, Charge
from app.policy.terms import Limit, Terms


def charges(asking: Asking, spec: ModelSpec, terms: Terms, *, lease_id: str, ttl_ms: float) -> Charge:
    """The charge of one admitted request. Without `max_tokens` the model's default is reserved, per choice."""
    request = asking.request
    factors = dict(terms.factors)
    reserve = spec.default_max_tokens if request.max_tokens is None else request.max_tokens
    return Charge(
        lease_id=lease_id,
        buckets=tuple(
            Bucket(limit.bucket, _owner(limit, request), limit.dimension, limit.limit, limit.burst, factors.get(limit.dimension, 1.0))
            for limit in terms.limits
        ),
        prompt_tokens=request.prompt_tokens,
        max_tokens=reserve * request.n,
        requests_cost=terms.cost.requests,
        input_cost=terms.cost.input,
        output_cost=terms.cost.output,
        cached_cost=terms.cost.cached,
        ttl_ms=ttl_ms,
        scope=asking.caller.key_id,
        tenant=request.tenant,
        model=request.model,
        request_key=asking.key,
        request_digest=asking.digest,
    )


def _owner(limit: Limit, request: DecideRequest) -> tuple[str, ...]:
    match limit.bucket:
        case "tenant":
            return ("tenant", request.tenant)
        case "tenant_model":
            return ("tenant_model", request.tenant, request.model)
        case "model":
            return ("model", request.model)
        case "subject":
            # Callers without a subject id share one bucket of the tenant, so that leaving it out gains nothing.
            return ("subject", request.tenant, (request.subject and request.subject.id) or "")
        case _:
            return ("site",)
