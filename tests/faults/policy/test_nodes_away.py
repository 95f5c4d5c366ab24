"""Rules for nodes while OPA is gone, or while one of them does not work."""

import asyncio
import os
import signal
import time
from pathlib import Path

from app.policy.node_answer import NodeAnswer
from app.policy.unanswered import PolicyUnavailable, Unanswered
from tests.fixtures.policy import Running, node_question, running_policy, tenant, write_rule

LOOP = 'max_num_seqs contains 0.5 if {\n\tinput.node.name != "vllm-0"\n\tcount([x | some x in numbers.range(1, 50000000)]) > 1\n}'


async def one(running: Running, name: str = "n0", **readings: float) -> NodeAnswer | Unanswered:
    """The answer for one node with these readings alone."""
    node = {"name": name, "kind": "vllm", "max_num_seqs": 256}
    return (await running.nodes.ask({(name, "m"): node_question(node=node, readings=readings)}))[name, "m"]


async def test_a_killed_opa_leaves_nodes_unanswered_until_it_is_back(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """After kill -9 of OPA what is known is still answered, what is new is not, and after its restart all is new again."""
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=200) as running:
        known = await one(running, kv_floor=0.8)
        os.kill(running.opa.child.pid, signal.SIGKILL)
        await running.opa.child.wait()
        remembered, away = await one(running, kv_floor=0.8), await one(running, kv_floor=0.9)
        end = time.perf_counter() + 10
        while not isinstance(back := await one(running, kv_floor=0.9), NodeAnswer):
            assert time.perf_counter() < end
            await asyncio.sleep(0.05)

    assert isinstance(known, NodeAnswer)
    assert (known.max_num_seqs_factor, remembered) == (0.7, known)
    assert isinstance(away, PolicyUnavailable)
    assert (back.max_num_seqs_factor, back.stale) == (0.3, ())


async def test_an_endless_rule_for_nodes_times_out_alone(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Other rules answer for every node meanwhile, and requests are decided as ever."""
    write_rule(rego_folder, "endless", LOOP, reads="node.name", kind="nodes")
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=200) as running:
        nodes = asyncio.create_task(
            running.nodes.ask({(f"n{n}", "m"): node_question(node={"name": f"n{n}"}, readings={"kv_floor": n / 10}) for n in range(10)})
        )
        decided = [await running.terms(tenant(f"t{n}")) for n in range(10)]
        answers = await nodes

    assert [terms.revision for terms in decided] == [running.policy.revision] * 10
    assert {
        place[0]: (answer.stale, answer.max_num_seqs_factor) for place, answer in answers.items() if isinstance(answer, NodeAnswer)
    } == {f"n{n}": (("endless",), 1.0 if n < 8 else 0.7 if n == 8 else 0.3) for n in range(10)}  # 0.8 is the one between 0.75 and 0.85


async def test_a_rule_for_nodes_in_conflict_fails_alone(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Its last part stands in for the node, every other rule and every other node is answered anew, and it is counted."""
    body = "max_num_seqs contains share\n\nshare := 0.5 if input.readings.waiting >= 1000\n\nshare := 0.4 if input.readings.waiting >= 5000"
    write_rule(rego_folder, "torn", body, reads="readings.waiting", kind="nodes")
    async with running_policy(rego_folder, opa_binary, sockets, timeout_ms=1000) as running:
        before = await one(running, waiting=1000, kv_floor=0.1)
        torn, other = await one(running, waiting=9000, kv_floor=0.9), await one(running, "n1", waiting=2000, kv_floor=0.1)
        counted = running.metrics.registry.get_sample_value("sluice_policy_errors_total", {"code": "policy_conflict", "rule": "torn"})

    assert [(answer.max_num_seqs_factor, answer.stale) for answer in (before, torn, other) if isinstance(answer, NodeAnswer)] == [
        (0.5, ()),
        (0.3, ("torn",)),
        (0.5, ()),
    ]
    assert counted == 1
