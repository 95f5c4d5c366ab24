"""From a changed file to the policy in force, over a real OPA's long polling."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import PolicyRefused
from app.policy import loader as loading
from app.policy.bundle import Compiled, archive
from app.policy.check import Seen, compile_policy
from app.policy.examples import QUIET
from app.policy.last_good import LastGood
from app.policy.modes import Modes
from tests.fixtures.policy import Running, question, running_policy, write_rule
from tests.fixtures.waiting import until

PRESSED = {**QUIET["readings"], "kv_mean": 0.6}


def set_watermark(folder: Path, value: str) -> None:
    rule = folder / "rules/pressure/pressure.rego"
    rule.write_text(rule.read_text().replace("high_watermark := 0.80", f"high_watermark := {value}"))


async def until_shed(running: Running, shed: float, within_s: float) -> float:
    begun = time.perf_counter()
    while (await running.terms(question(readings=PRESSED))).shed != pytest.approx(shed):
        assert time.perf_counter() - begun < within_s, f"shed is not {shed} after {within_s} s"
        await asyncio.sleep(0.005)
    return time.perf_counter() - begun


async def test_a_changed_watermark_changes_the_next_decision_within_a_second(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """0.6 is under the watermark of 0.8, and half way between 0.28 and 0.92 once that is written."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        assert (await running.terms(question(readings=PRESSED))).shed == 0

        set_watermark(rego_folder, "0.28")

        assert await until_shed(running, 0.5, within_s=1.0) < 1.0


async def test_a_broken_folder_changes_nothing_and_says_why(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """The last good policy answers on; the state names file and line; mending the file puts the newest in force."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        good = running.policy.revision
        broken = write_rule(rego_folder, "mine", "deny := true")
        await until(lambda: running.loader.state.problem is not None)

        assert "rules/mine/mine.rego:8: deny must be a set" in str(running.loader.state.problem)
        assert good == (await running.terms(question())).revision
        with pytest.raises(PolicyRefused):
            await running.loader.reload()

        broken.unlink()
        set_watermark(rego_folder, "0.28")
        await until_shed(running, 0.5, within_s=5.0)
        assert running.loader.state.problem is None


def spoil(compiled: Compiled) -> Compiled:
    """A bundle that our check passed and OPA refuses, as an older OPA may do."""
    modules = {**compiled.modules, "entry.rego": "package sluice.entry\n\nbroken :="}
    return replace(compiled, revision="spoiled", modules=modules, archive=archive("spoiled", modules))


async def test_what_opa_refuses_keeps_the_last_good_one_and_is_not_offered_again(
    rego_folder: Path, opa_binary: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """r1 answers every question until r3 is in force; r2 is refused with OPA's words, and refused again without being sent."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        r1 = running.policy.revision

        async def spoiled(folder: Path, binary: Path, modes: Modes, seen: Seen) -> Compiled:
            return spoil(await compile_policy(folder, binary, modes, seen))

        monkeypatch.setattr(loading, "compile_policy", spoiled)
        await running.loader.reload()
        await until(lambda: running.loader.state.problem is not None)

        assert {r1} == {(await running.terms(question(tenant={**QUIET["tenant"], "id": f"t{number}"}))).revision for number in range(100)}
        assert "unexpected eof token" in str(running.loader.state.problem)
        with pytest.raises(PolicyRefused):
            await running.loader.reload()
        assert r1 == running.loader.state.offered

        monkeypatch.setattr(loading, "compile_policy", compile_policy)
        set_watermark(rego_folder, "0.28")
        await until_shed(running, 0.5, within_s=5.0)
        assert running.policy.revision not in (r1, "spoiled")


async def test_no_revision_is_mixed_while_the_bundle_changes(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Each of the answers given during a change is wholly of the old or of the new revision, and none fails."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        old = running.policy.revision
        seen: dict[str, set[float]] = {}
        set_watermark(rego_folder, "0.28")
        number = 0
        while running.policy.revision == old or number < 50:
            number += 1
            asked = question(tenant={**QUIET["tenant"], "id": f"t{number}"}, readings=PRESSED)
            terms = await running.terms(asked)
            seen.setdefault(terms.revision, set()).add(round(terms.shed, 6))
            assert number < 20_000

        assert {old: {0.0}, running.policy.revision: {0.5}} == seen


async def test_a_restart_over_a_refused_folder_goes_on_with_the_last_policy_that_ran(
    rego_folder: Path, opa_binary: Path, sockets: Path, tmp_path: Path
) -> None:
    """A fleet that restarts during a bad commit keeps deciding as before it, and says why the folder is refused."""
    last_good = LastGood(tmp_path / "policy" / "last-good")
    set_watermark(rego_folder, "0.28")
    async with running_policy(rego_folder, opa_binary, sockets, last_good=last_good) as before:
        revision = before.policy.revision
        await until_shed(before, 0.5, within_s=5.0)

    write_rule(rego_folder, "mine", "deny := true")

    async with running_policy(rego_folder, opa_binary, sockets, last_good=last_good) as after:
        assert after.policy.revision == revision
        await until_shed(after, 0.5, within_s=5.0)
        assert "rules/mine/mine.rego" in str(after.loader.state.problem)
