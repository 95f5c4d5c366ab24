"""OPA killed or frozen: what is remembered stays exact, what is missing is substituted or refused."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from app.policy.examples import EXAMPLES, QUIET
from app.policy.policy import Generation
from app.policy.question import Section
from app.policy.unanswered import PolicyUnavailable
from tests.fixtures.policy import Running, question, running_policy
from tests.fixtures.waiting import until

pytestmark = pytest.mark.alone

DIMENSIONS = frozenset({"qps", "tpm", "concurrency"})
MODEL = QUIET["model"]["id"]


async def expect_outage_rules(running: Running) -> None:
    """With OPA away: memory is exact, new readings get a substitute, new tenants and sensitive models are refused."""
    exact = await running.terms(question(), dimensions=DIMENSIONS)
    assert (exact.shed, exact.degraded) == (0.0, False)

    substitute = await running.terms(question(readings={**QUIET["readings"], "kv_mean": 0.95}), dimensions=DIMENSIONS)
    assert substitute.degraded
    assert substitute.shed == 0.5
    assert {each.dimension: each.limit for each in substitute.limits if each.bucket == "tenant"} == {
        "qps": 25,
        "tpm": 15000,
        "concurrency": 4,
    }

    with pytest.raises(PolicyUnavailable):
        await running.terms(question(tenant={**QUIET["tenant"], "id": "never seen"}), dimensions=DIMENSIONS)
    with pytest.raises(PolicyUnavailable):
        await running.terms(
            question(**{**EXAMPLES["sensitive"], "readings": {**QUIET["readings"], "kv_mean": 0.95}}), sensitive=True, dimensions=DIMENSIONS
        )


async def test_killed_opa_leaves_memory_and_substitutes_and_comes_back(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """After kill -9 of OPA the outage rules hold until its restart, and then every question is answered again."""
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=200) as running:
        await running.policy.publish(Generation(1, {MODEL: Section.of(QUIET["readings"])}))
        await running.terms(question(), dimensions=DIMENSIONS)
        await running.terms(question(**EXAMPLES["sensitive"]), sensitive=True, dimensions=DIMENSIONS)
        os.kill(running.opa.child.pid, signal.SIGKILL)
        await running.opa.child.wait()
        await expect_outage_rules(running)

        async def answered() -> bool:
            try:
                return not (await running.terms(question(readings={**QUIET["readings"], "kv_mean": 0.95}), dimensions=DIMENSIONS)).degraded
            except PolicyUnavailable:
                return False

        end = time.perf_counter() + 10
        while not await answered():
            assert time.perf_counter() < end, "not answered after OPA's restart"
            await asyncio.sleep(0.02)


async def test_frozen_opa_is_an_outage_too_and_heals(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """A stopped OPA is told from a slow rule: substitutes and 503, at once after the first silence, and answers when it runs again."""
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=100) as running:
        await running.policy.publish(Generation(1, {MODEL: Section.of(QUIET["readings"])}))
        for _ in range(20):
            if running.policy.revision and not (await running.terms(question(), dimensions=DIMENSIONS)).degraded:
                break
        pid = running.opa.child.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await until(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
            await expect_outage_rules(running)
            begun = time.perf_counter()
            with pytest.raises(PolicyUnavailable):
                await running.terms(question(tenant={**QUIET["tenant"], "id": "another"}), dimensions=DIMENSIONS)
            assert time.perf_counter() - begun < 0.05
        finally:
            os.kill(pid, signal.SIGCONT)
        end = time.perf_counter() + 10
        while (await running.terms(question(readings={**QUIET["readings"], "kv_mean": 0.95}), dimensions=DIMENSIONS)).degraded:
            assert time.perf_counter() < end, "not answered after OPA runs again"
            await asyncio.sleep(0.05)


async def test_a_vanished_caller_leaves_the_answer_to_others(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Cancelling one of two callers with the same question cancels neither the call nor the other caller."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        asked = question(tenant={**QUIET["tenant"], "id": "shared"})
        first = asyncio.create_task(running.terms(asked))
        second = asyncio.create_task(running.terms(asked))
        await asyncio.sleep(0)
        first.cancel()

        terms = await second

        assert first.cancelled() or first.cancelling()
        assert running.policy.revision == terms.revision
        await until(first.done)
