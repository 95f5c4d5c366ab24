"""The peer of the benchmark answers the same questions by the same rules."""

import json
import subprocess
from pathlib import Path
from typing import Any

import orjson

from app.policy.parts import parse
from app.policy.terms import combine
from bench.joined import joined
from bench.questions import question
from bench.rules import SHIPPED, folder_of, touch

DIMENSIONS = frozenset(("qps", "tpm", "concurrency"))


def ask(opa: Path, rules: Path, folder: Path, body: str) -> dict[str, Any]:
    folder.mkdir()
    data = [part for file in joined(rules, folder) for part in ("--data", str(file))]
    command = [opa, "eval", "--format=raw", "--stdin-input", *data, "data.joined.terms"]
    ran = subprocess.run(command, input=orjson.dumps(json.loads(body)["input"]), capture_output=True, check=True)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_one_answer_holds_what_terms_need(opa_binary: Path, tmp_path: Path) -> None:
    """From the peer's answer the same terms can be combined: limits of the quota, the model's cost, nothing shed."""
    answer = ask(opa_binary, SHIPPED, tmp_path / "opa", question("hot-00"))
    terms = combine("r", [parse(rule, outputs) for rule, outputs in answer["always"].items()], DIMENSIONS)

    assert answer.keys() == {"always"}
    assert {"known", "pressure", "quota"} <= answer["always"].keys()
    assert {"qps", "tpm", "concurrency"} <= {limit.dimension for limit in terms.limits}
    assert terms.shed == 0
    assert not terms.denies


def test_folders_of_any_size_are_good_policies(opa_binary: Path, tmp_path: Path) -> None:
    """Made rules pass the checks that an operator's rules pass, and the peer answers all of them that are always asked."""
    answer = ask(opa_binary, folder_of(12, tmp_path / "rego"), tmp_path / "opa", question("hot-00"))
    not_always = {"sensitive_models", "memory_line"}  # the one has a condition, the other is off

    assert 12 - len(not_always) == len(answer["always"])


def test_a_touched_rule_says_the_same(tmp_path: Path) -> None:
    """Touching a folder again and again leaves one mark, so that the text does not grow."""
    folder = folder_of(5, tmp_path / "rego")
    rule = folder / "rules" / "pressure" / "pressure.rego"
    before = rule.read_text("utf-8").rstrip("\n")
    for stamp in (1, 2):
        touch(folder, stamp)

    assert rule.read_text("utf-8") == f"{before}\n# changed 2\n"
