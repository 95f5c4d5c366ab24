"""The memo's bound and order."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.policy.examples import QUIET
from app.policy.memo import Memo
from app.policy.question import Question, Section
from tests.unit.policy.opa_in_python import OpaInPython, policy_on, rule


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3000))), st.integers(0, 5000))
def test_the_bound_in_bytes_holds_after_every_step(puts: list[tuple[int, int]], bound: int) -> None:
    """However entries come and are replaced, their estimated bytes stay within the bound and add up."""
    memo: Memo[int] = Memo(bound, Metrics())

    for key, size in puts:
        memo.put((key,), key, size, 0.0)
        assert memo.bytes <= bound
    assert (memo.bytes == 0) == (len(memo) == 0)


def test_memos_add_up_in_the_gauge() -> None:
    """The bytes of two memos are told as one sum, also after one had to drop something."""
    metrics = Metrics()
    first, second = Memo[str](10_000, metrics), Memo[str](1_000, metrics)
    for number in range(3):
        first.put(("a", number), "value", 100, 0)
        second.put(("b", number), "value", 300, 0)

    assert (len(first), len(second)) == (3, 1)
    assert metrics.registry.get_sample_value("sluice_policy_memo_bytes") == first.bytes + second.bytes


def test_the_least_used_leaves_first() -> None:
    """Of three entries where two fit, the one used last stays with the newest."""
    memo: Memo[str] = Memo(2 * 500, Metrics())
    memo.put(("a",), "a", 100, 0.0)
    memo.put(("b",), "b", 100, 1.0)
    memo.use(("a",), 2.0)
    memo.put(("c",), "c", 100, 3.0)

    assert [memo.use((key,), 4.0) for key in "abc"] == ["a", None, "c"]


def test_hot_entries_are_those_a_question_used_lately() -> None:
    """An heir inherits when its predecessor was used and half of its uses, so that it cools down without questions."""
    memo: Memo[str] = Memo(10_000, Metrics())
    memo.put(("old",), "old", 1, 0.0)
    memo.put(("used",), "used", 1, 0.0)
    for _ in range(4):
        memo.use(("used",), 500.0)
    (entry,) = [entry for _, entry in memo.hot(100.0)]
    memo.put(("heir",), "heir", 1, 900.0, heir_of=entry)

    assert [(entry.value, entry.uses) for _, entry in memo.hot(500.0)] == [("heir", 2), ("used", 4)]
    assert [entry.value for _, entry in memo.hot(600.0)] == []


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
async def test_memory_stays_flat_over_many_tenant_names() -> None:
    """80 000 questions over 40 000 tenant names grow the process by no more than the memo's own bound and a half."""
    opa = OpaInPython(
        {"quota": lambda shown: {"limit": [{"bucket": "tenant", "dimension": "qps", "limit": 5}]}}, [rule("quota", ("tenant",))]
    )
    bound = 8 << 20
    policy, metrics = await policy_on(opa, ManualClock(), memo_bytes=bound)

    async def ask(count: int) -> None:
        for number in range(count):
            facts = {**QUIET["tenant"], "id": f"tenant-{number % 40_000}"}
            await policy.terms(Question(tenant=Section.of(facts)), sensitive=False, dimensions=frozenset())
            opa.calls.clear()

    await ask(20_000)
    before = resident_bytes()
    await ask(60_000)

    assert resident_bytes() - before <= 1.5 * bound
    assert metrics.registry.get_sample_value("sluice_policy_memo_bytes") <= bound
