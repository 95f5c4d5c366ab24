"""From a changed file to the policy in force, over a real OPA's long polling."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from app.errors import PolicyRefused
from app.policy import loader as loading
from app.policy.bundle import Compiled, archive
from app.policy.check import Seen, compile_policy
from app.policy.examples import QUIET
from app.policy.last_good import LastGood
from app.policy.modes import NO_MODES, Modes
from tests.fixtures.policy import Running, question, running_policy, write_rule
from tests.fixtures.waiting import until

pytestmark = pytest.mark.alone

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


async def test_the_log_is_told_what_came_into_force_and_what_was_refused(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """The first rules follow none; a refused folder is told with its problem, once for each look that gave a verdict; the next follow the first."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        first = running.policy.revision
        broken = write_rule(rego_folder, "mine", "deny := true")
        await until(lambda: running.loader.state.problem is not None)
        refused = orjson.loads(running.told[-1].body)
        broken.unlink()
        set_watermark(rego_folder, "0.28")
        await until_shed(running, 0.5, within_s=5.0)
        await until(lambda: len(running.told) == 3)

        assert running.logged() == [
            ("policy.activated", first, None),
            ("policy.refused", None, first),
            ("policy.activated", running.policy.revision, first),
        ]
        assert "rules/mine/mine.rego:8: deny must be a set" in refused["problem"]
        assert (refused["operator"], refused["outcome"]) == ("sluice", "refused")


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
        assert running.logged() == [("policy.activated", r1, None), ("policy.refused", "spoiled", r1)]
        with pytest.raises(PolicyRefused):
            await running.loader.reload()
        assert r1 == running.loader.state.offered

        monkeypatch.setattr(loading, "compile_policy", compile_policy)
        set_watermark(rego_folder, "0.28")
        await until_shed(running, 0.5, within_s=5.0)
        assert running.policy.revision not in (r1, "spoiled")


async def test_a_rule_that_is_off_or_in_shadow_by_the_setting_changes_no_terms(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Pressure sheds half of the requests at 0.86 of the cache; off or in shadow it sheds none, and in shadow one can see what it would."""
    full = question(readings={"live": 1, "known": 1, "kv_mean": 0.86})
    shed: dict[str, float] = {}
    judged: dict[str, list[str]] = {}
    revisions = set()
    for mode, modes in {"on": NO_MODES, "off": {"pressure": "off"}, "shadow": {"pressure": "shadow"}}.items():
        async with running_policy(rego_folder, opa_binary, sockets, modes=modes) as running:
            terms = await running.terms(full)
            shed[mode], revisions = terms.shed, {*revisions, terms.revision}
            judged[mode] = [judged.rule for judged in await running.policy.shadows(full, terms) if judged.rule == "pressure"]

    assert shed == {"on": pytest.approx(0.5), "off": 0, "shadow": 0}
    assert judged == {"on": [], "off": [], "shadow": ["pressure"]}
    assert len(revisions) == 3


async def test_a_rule_that_reads_a_field_is_asked_once_a_class(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """A hundred tenants of two classes are two questions to that rule's group, and each gets the answer of its class."""
    write_rule(rego_folder, "mine", 'shed contains 0.25 if input.tenant.sla_class == "payment"', reads="tenant.sla_class, time.weekday")
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        for number in range(100):
            sla_class = ("payment", "standard")[number % 2]
            terms = await running.terms(question(tenant={**QUIET["tenant"], "id": f"t{number}", "sla_class": sla_class}))
            assert terms.shed == (0.25, 0)[number % 2]
        looked = {
            result: running.metrics.registry.get_sample_value(
                "sluice_policy_memo_lookups_total", {"group": "tenant__sla_class_time__weekday", "result": result}
            )
            for result in ("miss", "hit")
        }

    assert looked == {"miss": 2, "hit": 98}


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


async def test_a_misspelt_name_in_the_setting_goes_on_with_the_last_policy_that_ran(
    rego_folder: Path, opa_binary: Path, sockets: Path, tmp_path: Path
) -> None:
    """A restart with a name that no rule has refuses the folder and says which is meant; what ran here last, and the other modes, hold."""
    last_good = LastGood(tmp_path / "policy" / "last-good")
    full = question(readings={"live": 1, "known": 1, "kv_mean": 0.86})
    async with running_policy(rego_folder, opa_binary, sockets, last_good=last_good) as before:
        assert (await before.terms(full)).shed == pytest.approx(0.5)

    modes: Modes = {"pressure": "off", "qota": "off"}
    async with running_policy(rego_folder, opa_binary, sockets, modes=modes, last_good=last_good) as after:
        assert "setting policy.rules: no rule is called qota; is quota meant?" in str(after.loader.state.problem)
        assert (await after.terms(full)).shed == 0
