"""How what rules contribute combines."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.policy.terms import BUCKETS, DIMENSIONS, MAX_FACTOR, Cost, Deny, Limit, Obligation, Part, Terms, combine, degrade, would_change
from app.policy.unanswered import PolicyUndefined

ANY = frozenset[str]()
amounts = st.floats(0, 1e9) | st.integers(0, 10**9)
codes = st.sampled_from(["a", "b", "c"])


def limits_of(name: str) -> st.SearchStrategy[Limit]:
    return st.builds(Limit, st.just(name), st.sampled_from(BUCKETS), st.sampled_from(DIMENSIONS), amounts, st.none() | amounts)


def part_of(name: str) -> st.SearchStrategy[Part]:
    return st.builds(
        Part,
        rule=st.just(name),
        denies=st.lists(st.builds(Deny, st.just(name), codes, codes, st.just(403), st.booleans()), max_size=3).map(tuple),
        waives=st.frozensets(codes, max_size=2),
        limits=st.lists(limits_of(name), max_size=4).map(tuple),
        costs=st.lists(st.builds(Cost, amounts, amounts, amounts, amounts), max_size=2).map(tuple),
        factors=st.lists(st.tuples(st.sampled_from(DIMENSIONS), st.floats(0, MAX_FACTOR)), max_size=3).map(tuple),
        sheds=st.lists(st.floats(0, 1), max_size=2).map(tuple),
        obligations=st.lists(
            st.builds(Obligation, codes, st.none() | st.integers(1, 4000), st.lists(codes, max_size=2).map(tuple)), max_size=3
        ).map(tuple),
    )


parts = st.lists(st.sampled_from(["one", "two", "three", "four"]), unique=True).flatmap(
    lambda names: st.tuples(*(part_of(name) for name in names)).map(list)
)


@given(parts, st.randoms())
def test_the_order_of_rules_does_not_matter(given_parts: list[Part], random: object) -> None:
    """The same parts in any order give the same terms, to the last digit."""
    shuffled = list(given_parts)
    random.shuffle(shuffled)

    assert combine("r", shuffled, ANY) == combine("r", given_parts, ANY)


@given(parts)
def test_limits_are_minima_costs_and_shed_are_maxima_and_factors_are_held(given_parts: list[Part]) -> None:
    """Each limit is the least named, each cost and the shed the most, and each factor within 0 and 1.5."""
    terms = combine("r", given_parts, ANY)

    named = [limit for part in given_parts for limit in part.limits]
    for limit in terms.limits:
        same = [each for each in named if (each.bucket, each.dimension) == (limit.bucket, limit.dimension)]
        assert limit.limit == min(each.limit for each in same)
        bursts = [each.burst for each in same if each.burst is not None]
        if bursts and limit.dimension == "tokens_in_flight":
            bursts += [each.limit for each in same if each.burst is None]
        assert limit.burst == min(bursts, default=None)
    assert {(limit.bucket, limit.dimension) for limit in terms.limits} == {(limit.bucket, limit.dimension) for limit in named}
    costs = [cost for part in given_parts for cost in part.costs]
    assert terms.cost.input == max((cost.input for cost in costs), default=1)
    assert terms.shed == max((shed for part in given_parts for shed in part.sheds), default=0)
    assert all(0 <= factor <= MAX_FACTOR for _, factor in terms.factors)


def test_a_fixed_limit_on_tokens_in_flight_bounds_what_another_may_become() -> None:
    """With 1000 tokens for ever and 300 for now, 8000 at best: 300 for now, and who is larger than 1000 never passes."""
    fixed, moving = Limit("mine", "model", "tokens_in_flight", 1000.0), Limit("kv", "model", "tokens_in_flight", 300.0, 8000.0)
    terms = combine("r", [Part("mine", limits=(fixed,)), Part("kv", limits=(moving,))], frozenset())

    assert terms.limits == (Limit("kv", "model", "tokens_in_flight", 300.0, 1000.0),)


@given(parts, limits_of("five"))
def test_another_limit_never_widens(given_parts: list[Part], limit: Limit) -> None:
    """Adding one limit leaves every limit that was there at most as large."""
    before = {(each.bucket, each.dimension): each.limit for each in combine("r", given_parts, ANY).limits}
    after = {(each.bucket, each.dimension): each.limit for each in combine("r", [*given_parts, Part("five", limits=(limit,))], ANY).limits}

    assert all(after[key] <= before[key] for key in before)
    assert after[limit.bucket, limit.dimension] <= limit.limit


@given(parts)
def test_only_waivable_denies_are_lifted_and_none_is_lost(given_parts: list[Part]) -> None:
    """Every deny either stands or is listed as lifted; what is lifted was waivable and waived."""
    terms = combine("r", given_parts, ANY)

    waived = {code for part in given_parts for code in part.waives}
    assert all(deny.waivable and deny.code in waived for deny in terms.waived)
    assert {*terms.denies, *terms.waived} == {deny for part in given_parts for deny in part.denies}


@given(parts)
def test_a_substitute_is_never_wider(given_parts: list[Part]) -> None:
    """Degraded terms have no larger limit, and shed at least half."""
    terms = combine("r", given_parts, ANY)
    degraded = degrade(terms)

    assert all(after.limit <= before.limit for before, after in zip(terms.limits, degraded.limits, strict=True))
    assert degraded.shed >= max(0.5, terms.shed)


@given(parts)
def test_a_part_that_is_already_in_changes_nothing_but_prices(given_parts: list[Part]) -> None:
    """Judging a rule against terms that contain it finds no tightening, factors apart: they multiply."""
    terms = combine("r", given_parts, ANY)

    for part in given_parts:
        plain = replace(part, denies=(), waives=frozenset(), factors=())
        assert would_change(terms, plain) == ()


def test_a_dimension_that_the_quota_names_and_no_rule_limits_is_undefined() -> None:
    """Missing is never unlimited."""
    with pytest.raises(PolicyUndefined, match="tpm"):
        combine("r", [Part("quota", limits=(Limit("quota", "tenant", "qps", 5),))], frozenset({"qps", "tpm"}))


def test_a_refusal_needs_no_limits() -> None:
    """A denied request is denied for its own reason, not for a limit that is missing as well."""
    terms = combine("r", [Part("known", denies=(Deny("known", "unknown_model", "m"),))], frozenset({"qps"}))

    assert [deny.code for deny in terms.denies] == ["unknown_model"]


def test_factors_multiply_and_obligations_merge() -> None:
    """0.5 x 0.8 = 0.4; 1.5 x 1.5 is held at 1.5; the longest retention and all fields stay."""
    first = Part("a", factors=(("tpm", 0.5), ("qps", 1.5)), obligations=(Obligation("audit", 365, ("x",)),))
    second = Part("b", factors=(("tpm", 0.8), ("qps", 1.5)), obligations=(Obligation("audit", 730, ("y",)), Obligation("mask")))

    terms = combine("r", [first, second], ANY)

    assert terms.factors == (("qps", 1.5), ("tpm", 0.4))
    assert terms.obligations == (Obligation("audit", 730, ("x", "y")), Obligation("mask"))


def test_the_rule_that_sheds_most_is_named() -> None:
    """Shed 0.5 by one rule and 0.9 by another is 0.9 by the other."""
    terms = combine("r", [Part("a", sheds=(0.5, 0.2)), Part("b", sheds=(0.9,))], ANY)

    assert (terms.shed, terms.shed_rule) == (0.9, "b")


def test_a_substitute_halves_limits_to_one_at_least() -> None:
    """8 becomes 4, 1.5 becomes 1, a closed bucket stays closed, 0.4 stays as it is."""
    limits = tuple(Limit("quota", "tenant", dimension, limit) for dimension, limit in zip(DIMENSIONS, (8, 1.5, 0, 0.4), strict=False))

    assert [limit.limit for limit in degrade(Terms("r", limits=limits)).limits] == [4, 1, 0, 0.4]
