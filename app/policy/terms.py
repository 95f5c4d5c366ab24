"""Terms: what a caller may do right now, combined from what each rule contributes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf, prod
from typing import Any

import orjson

from app.policy.unanswered import PolicyUndefined

BUCKETS = ("site", "model", "tenant", "tenant_model", "subject")
QUOTAS = ("qps", "tpm", "concurrency")
"""What a tenant's quota can name. A rule must limit each that it does name, and clients are told of them: they can plan by these."""
DIMENSIONS = (*QUOTAS, "tokens_in_flight", "request_tokens")
"""All that rules can limit: beside quotas the room in caches, which is the engines' matter and moves with each reading."""
MAX_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class Deny:
    """A refusal by a rule: `status` is what the gateway should answer (403 unless the rule says otherwise)."""

    rule: str
    code: str
    message: str
    status: int = 403
    waivable: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """The smallest limit for one (bucket, dimension). Units: qps requests/s, tpm tokens/min, else counts."""

    rule: str
    bucket: str
    dimension: str
    limit: float
    burst: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Multipliers of what one call spends: `requests` of qps; `input`, `output`, `cached` of tpm."""

    requests: float = 1.0
    input: float = 1.0
    output: float = 1.0
    cached: float = 1.0


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something that must be done with an admitted request; `audit` is done here before the answer."""

    code: str
    retention_days: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """What one rule contributes, checked (policy/parts.py makes it).

    `outputs` is what OPA gave, as JSON: nine tenths smaller than the objects, and only `?explain` looks at it.
    """

    rule: str
    denies: tuple[Deny, ...] = ()
    waives: frozenset[str] = frozenset()
    limits: tuple[Limit, ...] = ()
    costs: tuple[Cost, ...] = ()
    factors: tuple[tuple[str, float], ...] = ()
    sheds: tuple[float, ...] = ()
    obligations: tuple[Obligation, ...] = ()
    outputs: bytes = b"{}"

    @property
    def answered(self) -> dict[str, list[Any]]:
        """Its outputs as OPA gave them."""
        return orjson.loads(self.outputs)  # type: ignore[no-any-return]  # parts.py encoded it


@dataclass(frozen=True, slots=True)
class Terms:
    """The combination. Frozen and shared between callers with the same question."""

    revision: str
    denies: tuple[Deny, ...] = ()
    waived: tuple[Deny, ...] = ()
    limits: tuple[Limit, ...] = ()
    cost: Cost = field(default_factory=Cost)
    factors: tuple[tuple[str, float], ...] = ()
    """(dimension, product of the rules' factors held within 0..1.5); absent dimensions are 1."""
    shed: float = 0.0
    shed_rule: str | None = None
    obligations: tuple[Obligation, ...] = ()
    outputs: tuple[tuple[str, bytes], ...] = ()
    """Each rule's own outputs as OPA gave them, as JSON."""
    degraded: bool = False
    """True where a substitute answer was used because OPA did not answer."""

    @property
    def parts(self) -> dict[str, dict[str, list[Any]]]:
        """Each rule's own outputs, for `?explain`."""
        return {rule: orjson.loads(outputs) for rule, outputs in self.outputs}


def combine(revision: str, parts: Iterable[Part], dimensions: frozenset[str]) -> Terms:
    """The terms of one question (docs/how-to/write-a-rule.md has the table); the order of `parts` does not matter.

    `dimensions` are those that the tenant's quota names. Raises PolicyUndefined when no rule limits one of them and nothing
    is denied: missing is never unlimited.
    """
    parts = sorted(parts, key=_rule)
    denies, waived = _denies(parts)
    limits = _limits(parts)
    if not denies:
        limited = {limit.dimension for limit in limits}
        for dimension in sorted(dimensions - limited):
            raise PolicyUndefined(f"no rule limits {dimension}, which the quota names")
    shed, shed_rule = _shed(parts)
    return Terms(
        revision=revision,
        denies=denies,
        waived=waived,
        limits=limits,
        cost=_cost(parts),
        factors=_factors(parts),
        shed=shed,
        shed_rule=shed_rule,
        obligations=_obligations(parts),
        outputs=tuple((part.rule, part.outputs) for part in parts),
    )


def _rule(part: Part) -> str:
    return part.rule


def _denies(parts: list[Part]) -> tuple[tuple[Deny, ...], tuple[Deny, ...]]:
    """Denies in force and denies lifted by a waiver, each ordered by rule, code and message."""
    denies = sorted(chain.from_iterable(part.denies for part in parts), key=lambda deny: (deny.rule, deny.code, deny.message))
    waives = frozenset[str]().union(*(part.waives for part in parts))
    lifted = tuple(deny for deny in denies if deny.waivable and deny.code in waives)
    return tuple(deny for deny in denies if deny not in lifted), lifted


def _limits(parts: list[Part]) -> tuple[Limit, ...]:
    """The smallest limit per bucket and dimension, with the smallest burst that any rule names for it."""
    smallest: dict[tuple[str, str], Limit] = {}
    for part in parts:
        for limit in part.limits:
            known = smallest.get((limit.bucket, limit.dimension))
            smallest[limit.bucket, limit.dimension] = _smaller(known, limit) if known else limit
    return tuple(smallest[key] for key in sorted(smallest))


def _smaller(first: Limit, second: Limit) -> Limit:
    least = second if (second.limit, second.rule) < (first.limit, first.rule) else first
    return Limit(least.rule, least.bucket, least.dimension, least.limit, _smaller_burst(first, second))


def _smaller_burst(first: Limit, second: Limit) -> float | None:
    """Of rates, what a rule names. Tokens in flight have none where no limit follows readings; one that doesn't stays what it is."""
    bursts = [limit.burst for limit in (first, second) if limit.burst is not None]
    if bursts and first.dimension == "tokens_in_flight":
        bursts += [limit.limit for limit in (first, second) if limit.burst is None]
    return min(bursts, default=None)


def _cost(parts: list[Part]) -> Cost:
    costs = [cost for part in parts for cost in part.costs]
    if not costs:
        return Cost()
    return Cost(
        requests=max(cost.requests for cost in costs),
        input=max(cost.input for cost in costs),
        output=max(cost.output for cost in costs),
        cached=max(cost.cached for cost in costs),
    )


def _factors(parts: list[Part]) -> tuple[tuple[str, float], ...]:
    """Products per dimension. Multiplied in order of size, so that the same factors give the same float in any order."""
    factors: dict[str, list[float]] = {}
    for part in parts:
        for dimension, factor in part.factors:
            factors.setdefault(dimension, []).append(factor)
    return tuple((dimension, min(MAX_FACTOR, prod(sorted(factors[dimension])))) for dimension in sorted(factors))


def _shed(parts: list[Part]) -> tuple[float, str | None]:
    shed, shed_rule = 0.0, None
    for part in parts:
        most = max(part.sheds, default=0.0)
        if most > shed:
            shed, shed_rule = most, part.rule
    return shed, shed_rule


def _obligations(parts: list[Part]) -> tuple[Obligation, ...]:
    """One per code: the longest retention and every field that any rule names."""
    merged: dict[str, Obligation] = {}
    for obligation in chain.from_iterable(part.obligations for part in parts):
        known = merged.get(obligation.code, obligation)
        days = [each.retention_days for each in (known, obligation) if each.retention_days is not None]
        fields = tuple(sorted({*known.fields, *obligation.fields}))
        merged[obligation.code] = Obligation(obligation.code, max(days, default=None), fields)
    return tuple(merged[code] for code in sorted(merged))


LIMITS_DEGRADED = 0.5
SHED_DEGRADED = 0.5
"""What a substitute answer leaves of limits (at least 1 each), and what it sheds at least: nobody knows how full the engines are by now."""


def degrade(terms: Terms) -> Terms:
    """Terms made of older readings, tightened because the newest are not in them."""
    limits = tuple(
        replace(limit, limit=_halved(limit.limit), burst=None if limit.burst is None else _halved(limit.burst)) for limit in terms.limits
    )
    shed_rule = terms.shed_rule if terms.shed >= SHED_DEGRADED else None
    return replace(terms, limits=limits, shed=max(terms.shed, SHED_DEGRADED), shed_rule=shed_rule, degraded=True)


def _halved(limit: float) -> float:
    """Half, at least 1, and never more than it was."""
    return min(limit, max(1.0, limit * LIMITS_DEGRADED))


def would_change(terms: Terms, part: Part) -> tuple[str, ...]:
    """What one more part would change of `terms`, by output name: how a shadow rule is judged."""
    tightest = {(limit.bucket, limit.dimension): limit.limit for limit in terms.limits}
    changes = {
        "deny": any(not (deny.waivable and deny.code in part.waives) for deny in part.denies),
        "waive": any(deny.waivable and deny.code in part.waives for deny in terms.denies),
        "limit": any(limit.limit < tightest.get((limit.bucket, limit.dimension), inf) for limit in part.limits),
        "cost": any(_beyond(cost, terms.cost) for cost in part.costs),
        "scale": any(factor != 1 for _, factor in part.factors),
        "shed": any(shed > terms.shed for shed in part.sheds),
        "oblige": any(obligation.code not in {known.code for known in terms.obligations} for obligation in part.obligations),
    }
    return tuple(output for output, changed in changes.items() if changed)


def _beyond(cost: Cost, known: Cost) -> bool:
    return cost.requests > known.requests or cost.input > known.input or cost.output > known.output or cost.cached > known.cached
