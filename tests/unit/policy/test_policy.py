"""The policy in force: exact memory, publishing, outages, shadows."""

import asyncio
import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import ManualClock
from app.policy.opa import Down
from app.policy.policy import Generation
from app.policy.question import Question, Section
from app.policy.schema import SECTION_SCHEMAS
from app.policy.unanswered import PolicyInvalid, PolicyUnavailable, PolicyUndefined, Unanswered
from tests.unit.policy.opa_in_python import OpaInPython, conflict, policy_on, rule

NONE = frozenset[str]()


def limits_by(shown: dict[str, Any]) -> dict[str, list[Any]]:
    return {"limit": [{"bucket": "tenant", "dimension": "qps", "limit": shown["tenant"].get("qps", 7)}]}


def pressure_by(shown: dict[str, Any]) -> dict[str, list[Any]]:
    return {"shed": [shown["readings"].get("kv", 0)]}


def two_rules() -> OpaInPython:
    return OpaInPython({"quota": limits_by, "pressure": pressure_by}, [rule("quota", ("tenant",)), rule("pressure", ("readings",))])


def asked(tenant: str = "a", kv: float = 0.1, model: str = "m", facts: dict[str, Any] | None = None) -> Question:
    values = {"tenant": {"id": tenant, "qps": 8}, "readings": {"kv": kv}, "model": facts or {"id": model}}
    return Question(**{name: Section.of(value) for name, value in values.items()})


sections = st.sampled_from([{}, {"id": "a"}, {"id": "b"}, {"id": "a", "other": 1}, {"other": 1}])
questions = st.builds(Question, **{name: sections.map(Section.of) for name in SECTION_SCHEMAS})
rules = st.lists(
    st.tuples(
        st.sets(st.sampled_from((*SECTION_SCHEMAS, *(f"{name}.id" for name in SECTION_SCHEMAS))), min_size=1, max_size=3),
        st.sampled_from([(), ("model", "id")]),
    ),
    min_size=1,
    max_size=4,
)


def arbitrary(name: str, spoilt: bool) -> Any:
    """A rule whose answer depends on all it is shown, and which fails for some of it."""

    def answer(shown: dict[str, Any]) -> Any:
        digest = hashlib.sha256(orjson.dumps([name, shown], option=orjson.OPT_SORT_KEYS)).digest()
        if spoilt and digest[0] < 40:
            return conflict(name) if digest[0] < 20 else {"limit": [5]} if digest[0] < 30 else None
        return {
            "limit": [{"bucket": "tenant", "dimension": "qps", "limit": digest[1]}],
            "deny": [{"code": "x", "message": "m", "status": 403}] if digest[2] < 60 else [],
        }

    return answer


@settings(max_examples=60, deadline=None)
@given(rules, st.lists(questions, min_size=1, max_size=12), st.booleans())
def test_memory_on_and_off_agree(described: list[Any], many: list[Question], spoilt: bool) -> None:
    """Whatever the rules read and answer, a policy that remembers gives every question what one without memory gives."""
    names = [f"rule{number}" for number in range(len(described))]
    made = [rule(name, tuple(sorted(reads)), when=when) for name, (reads, when) in zip(names, described, strict=True)]
    functions = {name: arbitrary(name, spoilt) for name in names}

    async def answers(memo_bytes: int) -> list[Any]:
        policy, _ = await policy_on(OpaInPython(functions, made), ManualClock(), memo_bytes=memo_bytes)
        found: list[Any] = []
        for question in [*many, *many]:
            try:
                found.append(await policy.terms(question, sensitive=False, dimensions=NONE))
            except Unanswered as failure:
                found.append((failure.code, failure.rule))
        return found

    assert asyncio.run(answers(1 << 20)) == asyncio.run(answers(0))


async def test_a_warm_question_asks_nothing_and_does_not_yield() -> None:
    """The second time no call is made, and the answer is there before any other task runs."""
    opa = two_rules()
    policy, metrics = await policy_on(opa, ManualClock())
    first = await policy.terms(asked(), sensitive=False, dimensions=NONE)
    opa.calls.clear()
    coroutine = policy.terms(asked(), sensitive=False, dimensions=NONE)
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)

    assert stopped.value.value is first
    assert opa.calls == []
    assert metrics.registry.get_sample_value("sluice_policy_memo_lookups_total", {"group": "tenant", "result": "hit"}) == 1
    assert metrics.registry.get_sample_value("sluice_policy_memo_lookups_total", {"group": "tenant", "result": "miss"}) == 1


async def test_a_rule_is_shown_only_the_sections_it_declares() -> None:
    """The pressure rule sees readings alone, so a new tenant asks it nothing."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    await policy.terms(asked("a"), sensitive=False, dimensions=NONE)
    await policy.terms(asked("b"), sensitive=False, dimensions=NONE)

    assert [group for call in opa.calls for group, _ in call] == ["readings", "tenant", "tenant"]
    assert {frozenset(shown) for call in opa.calls for group, shown in call if group == "readings"} == {frozenset({"readings"})}


def rated_by(shown: dict[str, Any]) -> dict[str, list[Any]]:
    return {"limit": [{"bucket": "tenant", "dimension": "qps", "limit": 5 if shown["tenant"].get("sla_class") == "gold" else 3}]}


async def test_a_rule_that_reads_one_field_is_asked_once_for_all_who_share_it() -> None:
    """Three tenants of two classes are two questions, which hold the class and nothing else; without a class it is absent, not null."""
    opa = OpaInPython({"rated": rated_by}, [rule("rated", ("tenant.sla_class", "readings"))])
    policy, _ = await policy_on(opa, ManualClock())
    readings = Section.of({"kv": 0.1})
    limits = []
    for tenant in ({"id": "a", "sla_class": "gold"}, {"id": "b", "sla_class": "gold"}, {"id": "c", "qps": 9}):
        terms = await policy.terms(Question(tenant=Section.of(tenant), readings=readings), sensitive=False, dimensions=NONE)
        limits.append(terms.limits[0].limit)

    assert limits == [5, 5, 3]
    assert [shown for call in opa.calls for _, shown in call] == [
        {"tenant": {"sla_class": "gold"}, "readings": {"kv": 0.1}},
        {"tenant": {}, "readings": {"kv": 0.1}},
    ]


async def test_publishing_asks_only_where_a_field_that_is_read_has_changed() -> None:
    """A rule on one reading is not asked again for a snapshot in which others moved; when it moves, it is asked ahead of need."""
    opa = OpaInPython({"pressure": pressure_by}, [rule("pressure", ("readings.kv",))])
    policy, _ = await policy_on(opa, ManualClock())
    await policy.publish(Generation(1, {"m": Section.of({"kv": 0.1, "waiting": 1})}))
    await policy.terms(Question(readings=policy.generation.readings["m"]), sensitive=False, dimensions=NONE)
    opa.calls.clear()

    await policy.publish(Generation(2, {"m": Section.of({"kv": 0.1, "waiting": 2})}))
    assert opa.calls == []
    await policy.publish(Generation(3, {"m": Section.of({"kv": 0.6, "waiting": 2})}))

    assert opa.calls == [[("readings__kv", {"readings": {"kv": 0.6}})]]
    terms = await policy.terms(Question(readings=policy.generation.readings["m"]), sensitive=False, dimensions=NONE)
    assert (terms.shed, len(opa.calls)) == (0.6, 1)


async def test_an_outage_substitutes_answers_that_differ_in_a_field_of_readings_alone() -> None:
    """The newest answer of the same class and model stands in for one under new readings; another class has none."""
    opa = OpaInPython({"rated": rated_by}, [rule("rated", ("tenant.sla_class", "readings.kv"))])
    policy, _ = await policy_on(opa, ManualClock())

    def asking(sla_class: str, kv: float) -> Question:
        facts = {"tenant": {"id": "a", "sla_class": sla_class}, "readings": {"kv": kv, "waiting": 3}, "model": {"id": "m"}}
        return Question(**{name: Section.of(value) for name, value in facts.items()})

    await policy.terms(asking("gold", 0.1), sensitive=False, dimensions=NONE)
    opa.down = Down("refused")

    assert (await policy.terms(asking("gold", 0.9), sensitive=False, dimensions=NONE)).limits[0].limit == 2.5
    with pytest.raises(PolicyUnavailable):
        await policy.terms(asking("silver", 0.9), sensitive=False, dimensions=NONE)


async def test_a_rule_that_is_off_is_never_asked() -> None:
    """It neither refuses nor is it watched, and hot questions are not warmed for it."""
    refuses = lambda shown: {"deny": [{"code": "x", "message": "m", "status": 403}]}  # noqa: E731
    opa = OpaInPython({"quota": limits_by, "shut": refuses}, [rule("quota", ("tenant",)), rule("shut", ("tenant",), mode="off")])
    policy, _ = await policy_on(opa, ManualClock())
    terms = await policy.terms(asked(), sensitive=False, dimensions=NONE)

    assert (terms.denies, await policy.shadows(asked(), terms)) == ((), [])
    assert [group for call in opa.calls for group, _ in call] == ["tenant"]


async def test_a_conditional_rule_is_asked_only_where_its_path_exists() -> None:
    """With `when: model.sensitive` an ordinary model asks one group, a sensitive one two."""
    opa = OpaInPython(
        {"quota": limits_by, "access": lambda shown: {"deny": [{"code": "x", "message": "m", "status": 403}]}},
        [rule("quota", ("tenant",)), rule("access", ("subject",), when=("model", "sensitive"))],
    )
    policy, _ = await policy_on(opa, ManualClock())

    ordinary = await policy.terms(asked(), sensitive=False, dimensions=NONE)
    sensitive = await policy.terms(asked(facts={"id": "s", "sensitive": {}}), sensitive=True, dimensions=NONE)

    assert (len(ordinary.denies), len(sensitive.denies)) == (0, 1)


async def test_publishing_answers_hot_questions_before_the_snapshot_is_current() -> None:
    """A question used within the last second is warm under the new readings; one that was not is not asked again."""
    clock, opa = ManualClock(), two_rules()
    policy, _ = await policy_on(opa, clock)
    old, new = Section.of({"kv": 0.1}), Section.of({"kv": 0.6})
    await policy.publish(Generation(1, {"m": old, "cold": Section.of({"kv": 0.2})}))
    await policy.terms(asked(kv=0.2, model="cold"), sensitive=False, dimensions=NONE)
    clock.advance(1001)
    await policy.terms(asked(kv=0.1), sensitive=False, dimensions=NONE)
    opa.calls.clear()

    await policy.publish(Generation(2, {"m": new, "cold": Section.of({"kv": 0.3})}))

    assert opa.calls == [[("readings", {"readings": {"kv": 0.6}})]]
    assert policy.generation.number == 2
    assert (await policy.terms(asked(kv=0.6), sensitive=False, dimensions=NONE)).shed == 0.6
    assert len(opa.calls) == 1


async def test_publishing_never_waits_longer_than_its_bound() -> None:
    """With OPA stuck the snapshot becomes current all the same."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    await policy.publish(Generation(1, {"m": Section.of({"kv": 0.1})}))
    await policy.terms(asked(kv=0.1), sensitive=False, dimensions=NONE)
    opa.gate = asyncio.Event()

    await asyncio.wait_for(policy.publish(Generation(2, {"m": Section.of({"kv": 0.6})})), 1.0)

    assert policy.generation.number == 2
    opa.gate.set()


async def outage() -> tuple[Any, OpaInPython]:
    """A policy that answered one question about model m at kv 0.1, and lost OPA."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    await policy.terms(asked(kv=0.1), sensitive=False, dimensions=NONE)
    opa.down = Down("refused")
    return policy, opa


async def test_an_outage_gives_the_same_question_its_exact_answer() -> None:
    """What is remembered is as good without OPA as with it."""
    policy, _ = await outage()

    terms = await policy.terms(asked(kv=0.1), sensitive=False, dimensions=NONE)

    assert (terms.shed, terms.limits[0].limit, terms.degraded) == (0.1, 8, False)


async def test_an_outage_substitutes_answers_that_differ_in_readings_alone() -> None:
    """New readings of the same model get the newest answer at half its limits and at least half shed, and are not remembered."""
    policy, opa = await outage()

    terms = await policy.terms(asked(kv=0.9), sensitive=False, dimensions=NONE)
    assert (terms.shed, terms.limits[0].limit, terms.degraded) == (0.5, 4, True)

    opa.down = None
    assert (await policy.terms(asked(kv=0.9), sensitive=False, dimensions=NONE)).shed == 0.9


async def test_a_model_whose_readings_another_shared_has_a_newest_answer_too() -> None:
    """Two idle models are one question of the memo; when the second gets readings of its own in an outage, it is not refused."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    for model in ("first", "second"):
        await policy.terms(asked(kv=0.1, model=model), sensitive=False, dimensions=NONE)
    opa.down = Down("refused")

    assert (await policy.terms(asked(kv=0.9, model="second"), sensitive=False, dimensions=NONE)).degraded


@pytest.mark.parametrize(
    ("question", "sensitive"), [(asked("other", kv=0.1), False), (asked(kv=0.9, model="other"), False), (asked(kv=0.9), True)]
)
async def test_an_outage_substitutes_nothing_else(question: Question, sensitive: bool) -> None:
    """Another tenant, another model's readings and sensitive models are refused."""
    policy, _ = await outage()

    with pytest.raises(PolicyUnavailable):
        await policy.terms(question, sensitive=sensitive, dimensions=NONE)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [(None, PolicyUndefined), ({"limit": [5]}, PolicyInvalid), ({"shed": ["0.5"]}, PolicyInvalid)],
)
async def test_unusable_answers_are_refused_and_counted(answer: Any, failure: type[Unanswered]) -> None:
    """An undefined or misshapen answer names its rule, and is no reason for a substitute."""
    opa = OpaInPython({"quota": lambda shown: answer}, [rule("quota", ("tenant",))])
    policy, metrics = await policy_on(opa, ManualClock())

    with pytest.raises(failure) as refused:
        await policy.terms(asked(), sensitive=False, dimensions=NONE)

    assert refused.value.rule == "quota"
    counted = metrics.registry.get_sample_value("sluice_policy_errors_total", {"code": failure.code, "rule": "quota"})
    assert counted == 1


async def test_rules_beyond_the_bound_share_one_label() -> None:
    """Rules come and go with bundles, so failures of those after the first 200 names are counted as `other`."""
    opa = OpaInPython({"quota": lambda shown: None}, [rule("quota", ("tenant",))])
    policy, metrics = await policy_on(opa, ManualClock())
    for number in range(200):
        metrics.rule(f"rule_{number}")

    with pytest.raises(PolicyUndefined):
        await policy.terms(asked(), sensitive=False, dimensions=NONE)

    assert metrics.registry.get_sample_value("sluice_policy_errors_total", {"code": PolicyUndefined.code, "rule": "other"}) == 1


async def test_no_policy_in_force_is_unavailable() -> None:
    """Before the first bundle every question is refused."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    policy._plans = None

    with pytest.raises(PolicyUnavailable):
        await policy.terms(asked(), sensitive=False, dimensions=NONE)


async def test_an_answer_of_another_revision_is_not_kept_under_the_old_one() -> None:
    """When OPA moves to an offered bundle between two questions, the next miss moves with it and is answered by it."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    await policy.terms(asked(kv=0.1), sensitive=False, dimensions=NONE)
    opa.revision = "r2"
    policy.offer(opa.compiled)

    terms = await policy.terms(asked("b", kv=0.1), sensitive=False, dimensions=NONE)

    assert (terms.revision, policy.revision) == ("r2", "r2")


async def test_a_revision_that_was_never_offered_is_refused() -> None:
    """Answers of a bundle that is not ours are not used."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    opa.revision = "foreign"

    with pytest.raises(PolicyUnavailable, match="did not offer"):
        await policy.terms(asked(), sensitive=False, dimensions=NONE)


async def test_activation_answers_hot_questions_first() -> None:
    """After a bundle change a warm question is still warm."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    await policy.terms(asked(), sensitive=False, dimensions=NONE)
    opa.revision = "r2"

    await policy.activate(opa.compiled)
    opa.calls.clear()

    assert (await policy.terms(asked(), sensitive=False, dimensions=NONE)).revision == "r2"
    assert opa.calls == []


async def test_prefetch_asks_for_all_that_is_missing_together() -> None:
    """Four questions of four tenants are one call, and each is warm afterwards."""
    opa = two_rules()
    policy, _ = await policy_on(opa, ManualClock())
    many = [asked(f"t{number}") for number in range(4)]

    await policy.prefetch(many)
    assert [len(call) for call in opa.calls] == [5]

    for question in many:
        await policy.terms(question, sensitive=False, dimensions=NONE)
    assert len(opa.calls) == 1
