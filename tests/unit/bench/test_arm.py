"""What is read of an arm that was played, and how two of them are compared."""

from bench.arm import QUOTAS_ALONE, Arm, Pair, Sample
from bench.traffic import Report


def arm(*pages: dict[str, float], name: str = "alone") -> Arm:
    return Arm(name, Report((), 0.1, 1.0), tuple(Sample(at_s, page) for at_s, page in enumerate(pages)))


def test_restarted_counters_lose_nothing() -> None:
    """3, then 5, down, and anew from 0 to 2: 7 in all."""
    assert arm({"lost": 3}, {"lost": 5}, {}, {"lost": 0}, {"lost": 2}).grown("lost") == 7


def test_series_of_one_name_add_up() -> None:
    """Labels tell series of one metric apart; another metric whose name begins alike is another, and one that is absent is unknown."""
    sample = Sample(0.0, {'waiting{model="a"}': 1, 'waiting{model="b"}': 2, "waiting_total": 9})

    assert sample.value("waiting") == 3
    assert sample.value("running") is None


def test_moments_without_a_page_are_left_out() -> None:
    """While the engine is down nothing is drawn."""
    assert arm({"kv": 0.5}, {}, {"kv": 0.7}).series("kv") == [(0, 0.5), (2, 0.7)]


def test_arms_are_compared_by_one_figure() -> None:
    """The ratio is to the arm without; where that has nothing there is none."""
    pair = Pair("row", arm({"lost": 1}, name="with"), arm({"lost": 4}, name="without"))
    found = pair.finding("lost", "", lambda each: each.grown("lost"))
    empty = pair.finding("never", "", lambda each: each.grown("never"))

    assert (found.value, found.against, found.peer, found.ratio) == (1, "without", 4, 0.25)
    assert empty.ratio is None


def test_quotas_alone_leave_no_rule_on_that_looks_at_engines() -> None:
    """Rules for nodes are off, too; quotas, known ids and sensitive models stay."""
    assert {"pressure", "kv_budget", "latency", "in_flight", "isolation", "set_points"} <= QUOTAS_ALONE.keys()
    assert not {"known", "quota", "sensitive_models"} & QUOTAS_ALONE.keys()
    assert set(QUOTAS_ALONE.values()) == {"off"}
