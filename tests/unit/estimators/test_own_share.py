"""How much of a cache that others use, too, is ours: by hand, and within its bounds whatever comes."""

from hypothesis import given
from hypothesis import strategies as st

from app.estimators.own_share import HALF_LIFE_MS, OwnShare


def test_what_was_in_use_before_us_is_not_ours() -> None:
    """Half of the cache is others'; 40 000 tokens reserved a moment ago are not in it yet."""
    share = OwnShare()
    assert share.push(50_000, 0, 0.0) == 0
    assert share.push(50_000, 40_000, 0.0) == 0


def test_what_fills_up_after_we_reserved_is_ours() -> None:
    """30 000 of the free tokens went after we had reserved 40 000: they are counted as ours, at once."""
    share = OwnShare()
    share.push(50_000, 0, 0.0)
    share.push(50_000, 40_000, 0.0)
    assert share.push(20_000, 40_000, 0.0) == 30_000


def test_no_more_is_ours_than_we_hold() -> None:
    """Of 45 000 that went, 40 000 at most are ours."""
    share = OwnShare()
    share.push(50_000, 0, 0.0)
    share.push(50_000, 40_000, 0.0)
    assert share.push(5_000, 40_000, 0.0) == 40_000


def test_after_some_seconds_what_we_hold_is_in_the_cache() -> None:
    """A half-life later half of what we hold is counted as in it, though others may have come and gone meanwhile."""
    share = OwnShare()
    share.push(50_000, 0, 0.0)
    share.push(50_000, 40_000, 0.0)
    assert share.push(50_000, 40_000, HALF_LIFE_MS) == 20_000
    assert share.push(50_000, 40_000, 60 * HALF_LIFE_MS) in (39_999, 40_000)


def test_holding_nothing_settles_it() -> None:
    """With nothing of ours there, nothing is ours, whatever was thought before."""
    share = OwnShare()
    share.push(50_000, 0, 0.0)
    share.push(10_000, 40_000, 0.0)
    assert share.push(30_000, 0, 100.0) == 0
    assert share.push(30_000, 10_000, 100.0) == 0


def test_unknown_room_begins_anew() -> None:
    """After a gap nothing is known to be ours."""
    share = OwnShare()
    share.push(50_000, 0, 0.0)
    share.push(10_000, 40_000, 0.0)
    assert share.push(None, 40_000, 0.0) == 0
    assert share.push(10_000, 40_000, 0.0) == 0


@given(st.lists(st.tuples(st.none() | st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 10_000)), max_size=20))
def test_ours_is_between_nothing_and_what_we_hold(steps: list[tuple[int | None, int, float]]) -> None:
    """Whatever comes, what is promised on top of the free room is never more than we hold."""
    share, now_ms = OwnShare(), 0.0
    for free, held, elapsed_ms in steps:
        now_ms += elapsed_ms
        assert 0 <= share.push(free, held, now_ms) <= held
