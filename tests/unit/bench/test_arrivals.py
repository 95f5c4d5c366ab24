"""Requests that are drawn ahead for the arms of a proof."""

import pytest

from bench.arrivals import Phase, Sizes, draw

KINDS = [Sizes((1, 10), (20, 40), weight=0.75), Sizes((100, 200), (50, 60), weight=0.25)]


def test_arms_get_the_same_requests() -> None:
    """The same seed draws the same requests, another seed others."""
    phases = [Phase(10, 20)]

    assert draw(phases, KINDS, seed=1) == draw(phases, KINDS, seed=1)
    assert draw(phases, KINDS, seed=1) != draw(phases, KINDS, seed=2)


def test_each_phase_has_its_rate() -> None:
    """Over 1000 s at 10 a second and 1000 s at 40 the counts are within 5 %, five standard deviations of the smaller, and in order."""
    found = [arrival.due_s for arrival in draw([Phase(1000, 10), Phase(1000, 40)], KINDS, seed=3)]

    assert sorted(found) == found
    assert sum(at < 1000 for at in found) == pytest.approx(10_000, rel=0.05)
    assert sum(at >= 1000 for at in found) == pytest.approx(40_000, rel=0.05)
    assert found[-1] < 2000


def test_sizes_are_within_their_kind() -> None:
    """A request has the sizes of one kind, each kind as often as its weight says, and takes at least half of what it reserves."""
    found = draw([Phase(1000, 10)], KINDS, seed=3)
    long = [arrival for arrival in found if arrival.prompt_tokens >= 100]

    assert len(long) / len(found) == pytest.approx(0.25, rel=0.1)
    assert all(50 <= arrival.max_tokens <= 60 for arrival in long)
    assert all(arrival.max_tokens // 2 <= arrival.generated <= arrival.max_tokens for arrival in found)
