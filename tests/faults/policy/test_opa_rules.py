"""Rules that misbehave while OPA runs them: undefined, in conflict, endless."""

import asyncio
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.policy.question import Question
from app.policy.unanswered import PolicyConflict, PolicyTimeout, PolicyUndefined, Unanswered
from tests.fixtures.policy import Running, running_policy, tenant, write_rule
from tests.fixtures.waiting import until

pytestmark = pytest.mark.alone

LOOP = """deny contains {"code": "slow", "message": "m", "status": 403} if {
	startswith(input.tenant.id, "loop")
	some number in numbers.range(1, 100000000)
	number < 0
}"""

LOOPS = 20
CLOSED_MS = 100
ATTEMPTS = 3
"""A machine that does other work may be late with OPA's answers, about its health as well; not three times in a row."""


async def answer_of(running: Running, asked: Question) -> object:
    try:
        return await running.terms(asked)
    except Unanswered as failure:
        return failure


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def test_two_values_of_one_rule_are_a_conflict_for_the_culprit_alone(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Of eight questions asked together, only the one whose rule has two values fails, with the rule's name."""
    write_rule(
        rego_folder,
        "tier",
        'level := "gold" if startswith(input.tenant.id, "both")\n\nlevel := "silver" if endswith(input.tenant.id, "both")\n\n'
        'oblige contains {"code": level}',
    )
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        names = [f"t{number}" for number in range(7)] + ["both"]

        answers = dict(zip(names, await asyncio.gather(*(answer_of(running, tenant(name)) for name in names)), strict=True))

        conflict = answers.pop("both")
        assert isinstance(conflict, PolicyConflict)
        assert (conflict.code, conflict.rule) == ("policy_conflict", "tier")
        assert [name for name, answer in answers.items() if isinstance(answer, Unanswered)] == []
        assert running.metrics.registry.get_sample_value("sluice_policy_errors_total", {"code": "policy_conflict", "rule": "tier"}) == 1


async def test_a_dimension_that_no_rule_limits_is_undefined(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """A quota that names tokens in flight is never taken for unlimited where no rule limits them."""
    shutil.rmtree(rego_folder / "rules/kv_budget")
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        with pytest.raises(PolicyUndefined, match="tokens_in_flight"):
            await running.terms(tenant("a"), dimensions=frozenset({"qps", "tokens_in_flight"}))


async def test_an_undefined_division_is_no_answer_and_never_a_zero(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """A limit computed by a division by zero is missing, and the missing dimension is refused."""
    write_rule(
        rego_folder,
        "quota",
        'limit contains {"bucket": "tenant", "dimension": "qps", "limit": input.tenant.qps / input.tenant.concurrency}',
    )
    (rego_folder / "rules/quota/quota_test.rego").unlink()
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        with pytest.raises(PolicyUndefined, match="qps"):
            await running.terms(tenant("a", concurrency=0), dimensions=frozenset({"qps"}))


async def test_an_endless_rule_times_out_alone(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Twenty questions whose rule does not end fail closed within 100 ms, others beside them are answered, OPA is idle after."""
    write_rule(rego_folder, "slow", LOOP)
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=50) as running:
        warm = [tenant(f"warm{number}") for number in range(5)]
        for asked in warm:
            await until_answered(running, asked)
        for attempt in range(ATTEMPTS):
            one = await burst(running, warm, f"loop{attempt}-")
            if one.longest_ms <= CLOSED_MS and "policy_unavailable" not in one.codes:
                break

        assert one.codes == ["policy_timeout"] * LOOPS
        assert one.rules <= {"slow", "known,slow"}
        assert one.beside == []
        assert one.longest_ms <= CLOSED_MS

        async def idle() -> bool:
            before = cpu_seconds(running.opa.child.pid)
            await asyncio.sleep(0.1)
            return cpu_seconds(running.opa.child.pid) - before <= 0.02

        end = time.perf_counter() + 2
        while not await idle():
            assert time.perf_counter() < end, "OPA still evaluates after 2 s"
        await until_answered(running, tenant("cold"))


@dataclass(frozen=True, slots=True)
class Burst:
    """What became of questions without an end, and of the known ones asked beside them."""

    codes: list[str]
    rules: set[str | None]
    beside: list[object]
    """Answers to known questions that are none."""
    longest_ms: float


async def burst(running: Running, warm: list[Question], prefix: str) -> Burst:
    """Ask LOOPS questions whose rule does not end, and all of `warm`, at once."""
    took: list[float] = []

    async def timed(name: str) -> object:
        begun = time.perf_counter()
        answer = await answer_of(running, tenant(name))
        took.append((time.perf_counter() - begun) * 1000)
        return answer

    loops, normal = await asyncio.gather(
        asyncio.gather(*(timed(f"{prefix}{number}") for number in range(LOOPS))),
        asyncio.gather(*(answer_of(running, each) for each in warm)),
    )
    return Burst(
        codes=[loop.code if isinstance(loop, Unanswered) else "answered" for loop in loops],
        rules={loop.rule for loop in loops if isinstance(loop, PolicyTimeout)},
        beside=[each for each in normal if isinstance(each, Unanswered)],
        longest_ms=max(took),
    )


async def until_answered(running: Running, asked: Question) -> None:
    """A cold question on a busy machine may need a second try."""
    for _ in range(20):
        if not isinstance(await answer_of(running, asked), Unanswered):
            return
    pytest.fail("a normal question is not answered")


async def test_a_cold_question_beside_an_endless_one_is_answered(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """A question that travels in one call with one that does not end gets its own answer."""
    write_rule(rego_folder, "slow", LOOP)
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=400) as running:
        loop, normal = await asyncio.gather(answer_of(running, tenant("loop")), answer_of(running, tenant("normal")))

        assert isinstance(loop, PolicyTimeout)
        assert not isinstance(normal, Unanswered)
        await until(lambda: running.policy.revision is not None)
