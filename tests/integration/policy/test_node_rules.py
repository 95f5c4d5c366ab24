"""Rules for nodes: what a policy folder may hold, and what those that come with Sluice answer on a real OPA."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.errors import PolicyRefused
from app.policy.check import compile_policy
from app.policy.examples import NODE_EXAMPLES
from app.policy.kinds import NODES
from app.policy.modes import Modes
from app.policy.node_answer import Avoid, NodeAnswer
from tests.fixtures.policy import node_question, question, running_policy, write_rule
from tests.fixtures.waiting import until

AIMS = {"iteration_ms": 100, "kv": 0.8, "waiting": 10}
FULL = Avoid("isolation", "memory_full", "the node's device memory has been nearly full for 3 s")
WANTED = {
    "quiet node": ((), 1.0),
    "busy node": ((), 0.7),
    "full node": ((), 0.3),
    "node that does not preallocate": ((), 1.0),
    "node whose memory is nearly full": ((), 0.7),
    "node whose memory is full": ((FULL,), 0.3),
    "node without readings": ((), 1.0),
    "node of an unknown model": ((), 1.0),
}


async def test_the_rules_that_come_with_sluice_answer_each_example(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Memory counts only where the engine does not preallocate, KV usage where memory says nothing, and unknown changes nothing."""
    async with running_policy(rego_folder, opa_binary, sockets, modes={"isolation": "on"}) as running:
        answers = await running.nodes.ask({(name, "m"): node_question(**sections) for name, sections in NODE_EXAMPLES.items()})

    assert answers == {
        (name, "m"): NodeAnswer(avoid, factor, AIMS, running.policy.revision or "") for name, (avoid, factor) in WANTED.items()
    }


def by_steps(load: float) -> float:
    return 1 if load < 0.75 else 0.7 if load <= 0.85 else 0.3


def by_line(load: float) -> float:
    return max(0.3, min(1, 1 - (load - 0.8) * 5))


@pytest.mark.parametrize(
    ("modes", "reading", "wanted"),
    [({}, "floor", by_steps), ({"max_num_seqs": "off", "max_num_seqs_line": "on"}, "", by_line)],
    ids=["steps", "line"],
)
async def test_the_batch_follows_the_load_over_all_of_its_range(
    rego_folder: Path, opa_binary: Path, sockets: Path, *, modes: Modes, reading: str, wanted: Callable[[float], float]
) -> None:
    """From an empty to a full engine in thousandths, by memory and by KV usage, the factor is what the steps or the line say."""
    quiet, loads = NODE_EXAMPLES["quiet node"], [thousandth / 1000 for thousandth in range(1001)]
    signals = {"kv": {**quiet["model"], "preallocates": True}, "memory": {**quiet["model"], "preallocates": False}}
    questions = {
        (f"{signal} {load}", "m"): node_question(model=model, readings={f"{signal}_{reading}".rstrip("_"): load})
        for signal, model in signals.items()
        for load in loads
    }
    async with running_policy(rego_folder, opa_binary, sockets, modes=modes) as running:
        answers = await running.nodes.ask(questions)

    factors = {place[0]: answer.max_num_seqs_factor for place, answer in answers.items() if isinstance(answer, NodeAnswer)}
    assert factors == {f"{signal} {load}": pytest.approx(wanted(load)) for signal in signals for load in loads}


async def test_rules_of_both_kinds_are_one_policy(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """A change of a rule for nodes is a new revision for requests, too, and is in force for both."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        before = (await running.terms(question())).revision
        path = rego_folder / "nodes" / "set_points" / "set_points.rego"
        path.write_text(path.read_text().replace("waiting_aim := 10", "waiting_aim := 4"))
        await running.loader.reload()
        await until(lambda: running.policy.revision != before, within_s=10)
        requests = await running.terms(question())
        answer = (await running.nodes.ask({("n0", "m"): node_question()}))["n0", "m"]

    assert isinstance(answer, NodeAnswer)
    assert answer.set_points == {**AIMS, "waiting": 4}
    assert before != answer.revision == requests.revision


async def test_a_folder_needs_no_rules_for_nodes(rego_folder: Path, opa_binary: Path) -> None:
    """Without nodes/ a folder is complete."""
    shutil.rmtree(rego_folder / "nodes")

    assert (await compile_policy(rego_folder, opa_binary)).groups_of(NODES) == ()


@pytest.mark.parametrize(
    ("body", "reads", "says"),
    [
        (
            'deny contains {"code": "x", "message": "m", "status": 403}',
            "node",
            "a rule in nodes/ defines at least one of avoid, max_num_seqs",
        ),
        ("max_num_seqs contains 1 if input.tenant.qps > 1", "tenant", "must be one of the sections node, model, readings"),
        ("max_num_seqs contains 1 if input.readings.kv_mean > 1", "readings", "undefined ref: input.readings.kv_mean"),
        ("max_num_seqs contains 1 if input.readings.kv > 1", "node", "METADATA custom.reads lacks readings"),
        ("max_num_seqs := 1 if input.node.max_num_seqs > 1", "node", "max_num_seqs must be a set"),
        ("max_num_seq contains 1 if input.node.name\n\navoid contains 1 if false", "node", "is max_num_seqs meant?"),
        (
            "shed contains 0.5 if input.node.name\n\nmax_num_seqs contains 1 if false",
            "node",
            "8: shed is an output of rules/, which rules in nodes/",
        ),
        ("max_num_seqs contains 2 if input.node.name", "node", "rule mine: max_num_seqs must be from 0 to 1, not 2"),
        ("max_num_seqs contains input.node.max_num_seqs / 100", "node", "max_num_seqs must be from 0 to 1, not 2.56 (example"),
        ('set_point contains {"signal": "kv", "value": 80} if input.node.name', "node", "set_point.value must be from 1e-06 to 1, not 80"),
        ('avoid contains {"code": "x"} if input.node.name', "node", "avoid.message is missing"),
        ("max_num_seqs contains 1 if time.now_ns() > 1", "node", "rules may not look outside of the question"),
    ],
)
async def test_what_is_wrong_with_a_rule_for_nodes_is_named(rego_folder: Path, opa_binary: Path, body: str, reads: str, says: str) -> None:
    """The same checks as for rules for requests, against the sections and outputs of nodes."""
    write_rule(rego_folder, "mine", body, reads=reads, kind="nodes")
    with pytest.raises(PolicyRefused) as refused:
        await compile_policy(rego_folder, opa_binary)

    assert "nodes/mine/mine.rego" in refused.value.message
    assert says in refused.value.message


async def test_one_name_is_one_rule(rego_folder: Path, opa_binary: Path) -> None:
    """A rule for nodes that is called as one for requests is refused, since settings and metrics know rules by name alone."""
    write_rule(rego_folder, "quota", "max_num_seqs contains 1 if input.node.name", reads="node", kind="nodes")
    with pytest.raises(PolicyRefused, match="has the same name"):
        await compile_policy(rego_folder, opa_binary)


async def test_an_empty_folder_of_rules_for_nodes_is_a_write_in_progress(rego_folder: Path, opa_binary: Path) -> None:
    """It is refused, so that the last rules stay in force while somebody copies new ones; without the folder there are none."""
    shutil.rmtree(rego_folder / "nodes")
    (rego_folder / "nodes").mkdir()
    with pytest.raises(PolicyRefused, match="nodes/ holds no rule"):
        await compile_policy(rego_folder, opa_binary)


def test_a_question_about_a_node_can_be_tried(rego_folder: Path, tmp_path: Path) -> None:
    """`sluice policy eval` tells what each rule for nodes says, and what the node may do."""
    asked = tmp_path / "node.json"
    asked.write_text(json.dumps(NODE_EXAMPLES["node whose memory is full"]))
    turned_on = ("--set", "policy.rules.isolation=on")
    ran = CliRunner().invoke(app, ["policy", "eval", str(asked), "--path", str(rego_folder), "--output", "json", *turned_on])
    tried = json.loads(ran.stdout)

    assert ran.exit_code == 0
    assert tried["off"] == ["max_num_seqs_line"]
    assert tried["rules"]["max_num_seqs"] == {"max_num_seqs": [0.3]}
    assert tried["answer"] == {
        "avoid": [{"rule": "isolation", "code": FULL.code, "message": FULL.message}],
        "max_num_seqs_factor": 0.3,
        "set_points": AIMS,
    }


@pytest.mark.parametrize("reads", [[], ["--reads", "node.max_num_seqs", "--reads", "readings"]])
async def test_a_new_rule_for_nodes_compiles_and_its_test_passes(rego_folder: Path, opa_binary: Path, reads: list[str]) -> None:
    """`sluice policy new --kind nodes` writes a rule in shadow that passes every check."""
    ran = CliRunner().invoke(app, ["policy", "new", "hot", "--kind", "nodes", "--path", str(rego_folder), *reads])
    groups = (await compile_policy(rego_folder, opa_binary)).groups_of(NODES)

    assert ran.exit_code == 0
    assert [rule.name for group in groups if group.mode == "shadow" for rule in group.rules] == ["hot"]
