"""From rounds to findings: ratios, budgets, and how they are shown."""

import pytest

from bench.load import Outcome
from bench.measure import Round, compare, p99_ms
from bench.report import Finding, table


def one(cpu_us: float, p99: float = 1.0, refused: float = 0.0) -> Round:
    outcome = Outcome(
        answers=100, allowed=100, failed=0, seconds=1.0, p50_ms=1.0, p99_ms=p99, max_ms=9.0, late_p99_ms=0.1, cpu_s=0.1, odd=""
    )
    return Round(cpu_us, p99, outcome, 0.1, refused)


def test_ratio_is_the_median_of_the_rounds() -> None:
    """Each round is compared with its peer of the same round, so noise that meets both falls out."""
    found = compare("warm", "CPU", [one(100), one(300), one(90)], "OPA", [one(200), one(600), one(100)], budget=0.7)

    assert (found.value, found.peer, found.ratio, found.spread) == (100, 200, 0.5, (0.5, 0.9))
    assert found.met is True


def test_latency_is_compared_as_cpu_is() -> None:
    """The attribute says what is compared, and in which unit."""
    found = compare("steady", "p99", [one(1, p99=3.0)], "route", [one(1, p99=2.0)], attribute=p99_ms, budget=1.3)

    assert (found.ratio, found.unit, found.met) == (1.5, "ms", False)


def test_refusals_are_noted() -> None:
    """A comparison in which decisions were refused says so."""
    found = compare("miss", "CPU", [one(1, refused=0.02), one(1)], "OPA", [one(1), one(1)], note="as ever")

    assert found.note == "as ever; refused, by rounds: 2.0%, 0.0%"


@pytest.mark.parametrize(("value", "met"), [(4.9, True), (5.0, True), (5.1, False)])
def test_budget_without_a_peer_is_of_the_value(value: float, met: bool) -> None:
    """A number without a peer is held against the budget itself, which may be reached."""
    assert met is Finding("steady", "p99", value, "ms", budget=5.0).met


def test_table_names_what_was_missed() -> None:
    """Each finding is a line with its budget and whether it is met; without a budget there is no verdict."""
    lines = table([Finding("a", "slow", 9.0, "ms", budget=5.0), Finding("b", "free", 1.0, "ms", note="by the way")]).splitlines()

    assert lines[2].split() == ["a", "slow", "9", "ms", "≤", "5", "NO"]
    assert lines[3].split() == ["b", "free", "1", "ms"]
    assert lines[4].split() == ["by", "the", "way"]
