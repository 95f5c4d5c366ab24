"""The sentence, with its neighbours played by the smallest stand-ins that can contradict it."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from app.auth.keys import Principal
from app.catalog.models import ModelSpec
from app.clock import ManualClock
from app.decision.decide import Decider, Rooms
from app.decision.request import Asking, DecideRequest
from app.decision.tally import Tally
from app.errors import DependencyDown
from app.limiter.charge import Usage
from app.limiter.in_flight import Held
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics
from app.policy.policy import Generation
from app.policy.shadow import Judged
from app.policy.terms import Cost, Deny, Limit, Part, Terms
from app.policy.unanswered import PolicyInvalid, PolicyTimeout, PolicyUnavailable
from app.quota.quota import Quota
from app.quota.registry import Tenant
from app.telemetry.view import ModelView, View

CALLER = Principal("k-1", "gw", frozenset(("gateway",)), frozenset(("a",)))
SPEC = ModelSpec(id="m", default_max_tokens=100)
LIVE = View(models={"m": ModelView({"live": 2}, ("vllm-0", "vllm-1"), 40.0)})
NONE_LIVE = View(models={"m": ModelView({"live": 0})})
SHED = Terms("r1", shed=1.0, shed_rule="liveness")
OPEN = Terms("r1", limits=(Limit("quota", "tenant", "tpm", 1000.0), Limit("quota", "tenant", "concurrency", 2.0)))


class Tickets:
    """One probe for each model of `due`, which holds the node that needs it."""

    def __init__(self, due):
        self.nodes, self.taken = due, []

    def due(self, model):
        return None if model in self.taken else self.nodes.get(model)

    def take(self, node, model):
        assert self.nodes[model] == node
        self.taken.append(model)
        return True

    def give_back(self, node, model):
        assert self.nodes[model] == node
        self.taken.remove(model)


class Bench:
    """A decider with terms, draw and log as the test says."""

    def __init__(self, terms=OPEN, *, draw=0.5, log_error=None, tenant=True, view=None, due=None):
        clock, metrics = ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), Metrics()
        self.limiter = MemoryLimiter(clock, keep_ms=1000, records_bytes=1_000_000, metrics=metrics)
        self.metrics = metrics
        self.terms, self.log_error, self.asked, self.watched, self.summed = terms, log_error, [], [], []
        self.tickets = Tickets(due or {})
        self.owed = None
        self.approvals = SimpleNamespace(facts=lambda *_: None)
        known = Tenant.of("a", Quota(qps=Decimal(50), tpm=1000), 3) if tenant else None
        self.decider = Decider(
            Rooms(
                clock=clock,
                catalog=SimpleNamespace(model={"m": SPEC}.get),
                registry=SimpleNamespace(tenant={"a": known}.get),
                approvals=self.approvals,
                policy=SimpleNamespace(generation=Generation(7), terms=self._terms, watch=self._watch, shadows=self._shadows),
                readings=SimpleNamespace(view=view or View()),
                limiter=self.limiter,
                records=SimpleNamespace(write=self._write),
                tally=Tally(metrics, SimpleNamespace(count=self._summarise)),
                ttl_ms=30_000.0,
                draw=lambda: draw,
                probes=self.tickets,
            )
        )

    async def _terms(self, question, *, sensitive, dimensions):
        self.asked.append((question, sensitive, dimensions))
        if isinstance(self.terms, Exception):
            raise self.terms
        return self.terms

    def _watch(self, question, terms, decision_id):
        self.watched.append(decision_id)

    async def _summarise(self, *counted):
        self.summed.append(counted)

    async def _shadows(self, question, terms):
        part = Part("doubt", outputs=b'{"shed":[0.5]}')
        return [Judged("doubt", part, ("shed",)), Judged("slow", failure=PolicyTimeout("no answer within 50 ms", "slow"))]

    async def _write(self, *_):
        if self.log_error is not None:
            raise self.log_error
        return self.owed

    async def decide(self, *, explain=False, **fields):
        request = DecideRequest.model_validate({"tenant": "a", "model": "m", "prompt_tokens": 10, "max_tokens": 20} | fields)
        return await self.decider.decide(Asking(request, CALLER), explain=explain)

    async def left(self):
        return {level.bucket.dimension: level.remaining for level in await self.limiter.usage("a")}


async def test_what_is_spent_is_what_the_terms_say():
    """(10 + 20 x 2 choices) tokens at a cost of 3 leave 1000 - 150, and one of two slots."""
    bench = Bench(Terms("r1", limits=OPEN.limits, cost=Cost(input=3.0, output=3.0)))

    decision = await bench.decide(n=2)

    assert decision.allow
    assert decision.tokens_reserved == 50
    assert await bench.left() == {"tpm": 850, "concurrency": 1}


async def test_without_max_tokens_the_models_default_is_reserved():
    """10 prompt tokens and the default of 100."""
    bench = Bench()

    assert (await bench.decide(max_tokens=None)).tokens_reserved == 110


async def test_an_approval_that_is_taken_back_while_the_rules_think_opens_nothing():
    """The rules are asked again, about the approval as it is by then; a request that names none is asked once."""
    bench = Bench()
    states = iter(["approved", "revoked", "revoked", "revoked"])  # read to ask, to look, and both again
    bench.approvals.facts = lambda *_: {"state": next(states)}
    await bench.decide(approval_id="x")
    await bench.decide()

    assert [dict(question.subject.value) for question, _, _ in bench.asked] == [
        {"approval": {"state": "approved"}},
        {"approval": {"state": "revoked"}},
        {},
    ]


async def test_a_denied_request_spends_nothing():
    """Rules refuse before any bucket is looked at."""
    bench = Bench(Terms("r1", denies=(Deny("x", "no", "not you"),), limits=OPEN.limits))

    assert (await bench.decide()).status == 403
    assert await bench.left() == {}


@pytest.mark.parametrize(("draw", "status"), [(0.0, 429), (0.4999, 429), (0.5, 200), (0.99, 200)])
async def test_a_shed_of_one_half_refuses_the_lower_half_of_draws(draw, status):
    """The draw is below the probability in exactly that share of requests."""
    bench = Bench(Terms("r1", shed=0.5, shed_rule="pressure", limits=OPEN.limits), draw=draw)

    assert (await bench.decide()).status == status


@pytest.mark.parametrize("error", [DependencyDown("PostgreSQL: down"), RuntimeError("a bug of ours")])
async def test_without_its_log_entry_nothing_is_granted_and_nothing_stays_spent(error):
    """Whatever kept the entry from the log, the caller gets 503 audit_unavailable and every bucket is as before."""
    bench = Bench(log_error=error)

    decision = await bench.decide()

    assert (decision.allow, decision.status, decision.reasons[0].code) == (False, 503, "audit_unavailable")
    assert {dimension: int(left) for dimension, left in (await bench.left()).items()} in ({}, {"tpm": 1000, "concurrency": 2})


async def test_a_policy_that_gives_no_answer_is_a_503_with_its_code():
    """Failing closed is a decision, with a time to come back."""
    bench = Bench(PolicyTimeout("no answer within 50 ms", "slow"))

    decision = await bench.decide()

    assert (decision.status, decision.reasons[0].code, decision.reasons[0].rule) == (503, "policy_timeout", "slow")
    assert decision.retry_after_ms == 3000


async def test_shadow_rules_see_the_decision_under_its_id():
    """Whatever a shadow rule would have changed can be found again by the decision."""
    bench = Bench()

    decision = await bench.decide()

    assert bench.watched == [decision.facts.id]


async def test_explain_tells_what_shadow_rules_would_have_changed():
    """Each with its outputs, or why it gave no answer."""
    decision = await Bench().decide(explain=True)

    told = decision.facts.explain["shadow"]
    assert told["doubt"] == {"outputs": {"shed": [0.5]}, "would_change": ["shed"]}
    assert (told["slow"]["unanswered"]["code"], told["slow"]["unanswered"]["message"]) == ("policy_timeout", "no answer within 50 ms")


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (PolicyInvalid("rule mine: shed must be a number, not a text", "mine"), "rule mine: shed must be a number, not a text"),
        (PolicyUnavailable("Cannot connect to unix:///var/x/opa.sock"), None),
    ],
)
async def test_explain_tells_what_a_rule_did_wrong_and_nothing_of_this_machine(failure, told):
    """The field of a wrong shape is told; where OPA would be found is not."""
    decision = await Bench(failure).decide(explain=True)

    assert decision.facts.explain["unanswered"].get("message") == told
    assert decision.facts.explain["unanswered"]["code"] == failure.code
    assert decision.facts.explain["shadow"] == {}


@pytest.mark.parametrize(("tenant", "model"), [(False, "m"), (True, "absent")])
async def test_rules_that_let_the_unknown_pass_do_not_open_the_gate(tenant, model):
    """Without a quota or a spec nothing would be limited or reserved, so the answer is no whatever the rules say."""
    bench = Bench(tenant=tenant)

    assert (await bench.decide(model=model)).status == 403


async def test_the_question_holds_no_counts_and_no_ids_of_requests():
    """Rules see sections alone; only the dimensions that the quota names must be limited."""
    bench = Bench()
    await bench.decide(purpose="chat", subject={"id": "s-1", "roles": ["b", "a", "b"]})

    question, sensitive, dimensions = bench.asked[0]

    assert question.request.value == {"action": "infer", "priority": "P1", "stream": False, "purpose": "chat"}
    assert question.subject.value == {"roles": ["a", "b"], "attributes": {}}
    assert question.time.value == {"minute": 0, "hour": 0, "weekday": "thursday"}
    assert (sensitive, dimensions) == (False, {"qps", "tpm"})


async def test_outcomes_are_counted_with_bounded_labels():
    """A model that the catalogue lacks counts under one label, however it is spelt."""
    bench = Bench(Terms("r1", denies=(Deny("known", "unknown_model", "no"),)))
    await bench.decide(model="x1")
    await bench.decide(model="x2")

    labels = {"outcome": "deny", "reason": "unknown_model", "tenant": "a", "model": "unknown", "region": "", "sla_class": "standard"}
    assert bench.metrics.registry.get_sample_value("sluice_decisions_total", labels) == 2


@pytest.mark.parametrize(("wished", "node"), [(None, "vllm-0"), ("vllm-1", "vllm-1"), ("vllm-7", "vllm-0")])
async def test_a_request_is_counted_on_the_node_it_is_sent_to(wished, node):
    """The node that the gateway chose where new requests may go there, else the best one; its lease is in flight there."""
    bench = Bench(view=LIVE)

    decision = await bench.decide(node=wished)

    assert decision.document()["node"] == node
    assert bench.limiter.in_flight(node, "m") == Held(requests=1, tokens=30)


async def test_a_lease_keeps_the_views_name_of_its_node():
    """A thousand leases of one node share one text, whatever texts gateways send."""
    name = "vllm-0-of-a-long-name"
    bench = Bench(view=View(models={"m": ModelView({"live": 1}, (name,), 40.0)}))
    await bench.decide(node="".join(list(name)))

    assert (await bench.limiter.leases())[0].node is name


async def test_without_a_live_node_none_is_named():
    """What rules let through all the same counts for its model, on no node."""
    bench = Bench(view=NONE_LIVE)

    assert (await bench.decide()).document()["node"] is None
    assert bench.limiter.in_flight(None, "m").requests == 1


async def test_a_probe_that_is_due_is_not_shed():
    """A node that telemetry shuts out gets the one request that shows whether it lives; the next is shed as before."""
    bench = Bench(SHED, view=NONE_LIVE, due={"m": "frozen-0"})

    probe, other = await bench.decide(explain=True), await bench.decide()

    assert (probe.allow, probe.document()["node"], probe.document()["telemetry"]["probe"]) == (True, "frozen-0", True)
    assert probe.facts.explain["probe"] is True
    assert bench.limiter.in_flight("frozen-0", "m").requests == 1
    assert (other.outcome, bench.tickets.taken) == ("shed", ["m"])


async def test_a_probe_goes_to_its_node_whatever_node_is_best():
    """A node that nobody would choose is never tried otherwise, also by a request that named one that is not live."""
    assert (await Bench(view=LIVE, due={"m": "frozen-0"}).decide()).document()["node"] == "frozen-0"
    assert (await Bench(view=LIVE, due={"m": "frozen-0"}).decide(node="gone")).document()["node"] == "frozen-0"


async def test_a_request_whose_live_node_is_named_is_no_probe():
    """A gateway that has routed the call already keeps its node; the probe is there for the next."""
    bench = Bench(view=LIVE, due={"m": "frozen-0"})

    assert (await bench.decide(node="vllm-1")).document()["node"] == "vllm-1"
    assert bench.tickets.taken == []


async def test_what_is_no_probe_says_nothing_of_probes():
    """The field is there where it is true, only."""
    decision = await Bench(view=LIVE, due={"other": "frozen-0"}).decide(explain=True)

    assert "probe" not in decision.document()["telemetry"]
    assert decision.facts.explain["probe"] is False


async def test_a_denied_request_is_no_probe():
    """Who may not use the model does not use it to look after a node, and takes the probe from nobody."""
    bench = Bench(Terms("r1", denies=(Deny("x", "no", "not you"),)), view=LIVE, due={"m": "frozen-0"})

    assert (await bench.decide()).outcome == "deny"
    assert bench.tickets.taken == []


FULL = Terms("r1", limits=(Limit("quota", "tenant", "concurrency", 0.0),))


@pytest.mark.parametrize(
    ("terms", "setting", "outcome"),
    [
        (FULL, {}, "quota"),
        (OPEN, {"log_error": DependencyDown("PostgreSQL: down")}, "error"),
        (OPEN, {"tenant": False}, "deny"),
    ],
)
async def test_a_probe_that_does_not_start_is_there_for_the_next_request(terms, setting, outcome):
    """Quotas, limits and records hold for a probe as for any request; refused, it is no probe, and another may be."""
    bench = Bench(terms, view=LIVE, due={"m": "frozen-0"}, **setting)

    decision = await bench.decide()

    assert (decision.outcome, bench.tickets.taken) == (outcome, [])
    assert "probe" not in decision.document()["telemetry"]
    assert bench.limiter.in_flight("frozen-0", "m").requests == 0


async def test_a_probe_whose_request_breaks_off_is_there_for_the_next():
    """Also where no decision comes of it: the server ends while the log is written."""
    bench = Bench(view=LIVE, due={"m": "frozen-0"}, log_error=asyncio.CancelledError())

    with pytest.raises(asyncio.CancelledError):
        await bench.decide()
    assert bench.tickets.taken == []


async def test_a_draining_replica_sends_no_probe():
    """The probe is given back with the request."""
    bench = Bench(view=LIVE, due={"m": "frozen-0"})
    await bench.limiter.drain()

    assert (await bench.decide()).reasons[0].code == "draining"
    assert bench.tickets.taken == []


def caches(tokens, most=2000.0):
    """Limits of a reading: what fits the caches now, and what they would hold when empty."""
    return Terms(
        "r1",
        limits=(
            Limit("kv_budget", "model", "concurrency", 200.0),
            Limit("kv_budget", "model", "request_tokens", most),
            Limit("kv_budget", "model", "tokens_in_flight", tokens, most),
        ),
    )


async def test_a_hundred_decisions_under_one_reading_share_its_room():
    """Of a hundred requests of 30 tokens that see the same 1000 free, 33 start; when ten have ended, ten more do."""
    bench = Bench(caches(1000.0), view=LIVE)
    decisions = [await bench.decide() for _ in range(100)]
    started = [decision for decision in decisions if decision.allow]
    assert (len(started), bench.limiter.by_model()) == (33, {"m": Held(33, 990)})

    for decision in started[:10]:
        await bench.limiter.settle(decision.facts.id, CALLER.key_id, Usage(10, 1))
    assert sum([(await bench.decide()).allow for _ in range(100)]) == 10


async def test_who_finds_no_room_comes_back_and_who_fits_no_cache_does_not():
    """Room may come with the next reading: 3 s by default. A request larger than the whole cache is told not to come again."""
    bench = Bench(caches(100.0), view=LIVE)

    waits = (await bench.decide(max_tokens=500)).document()
    assert [reason["code"] for reason in waits["reasons"]] == ["tokens_in_flight_exceeded"]
    assert (waits["retry_after_ms"], waits["headers"]["x-should-retry"]) == (3000, "true")

    never = (await bench.decide(max_tokens=2000)).document()
    assert never["reasons"][0]["code"] == "request_tokens_exceeded"
    assert (never["status"], never["retry_after_ms"], never["headers"]) == (429, None, {"x-should-retry": "false"})


async def test_every_decision_is_counted_for_the_log():
    """Admitted, refused by a limit and unanswered: each counts once, and who is unknown counts without a name."""
    bench = Bench(Terms("r1", limits=(Limit("quota", "tenant", "concurrency", 1.0),)))
    await bench.decide()
    await bench.decide()
    await bench.decide(tenant="b", model="x")
    bench.terms = PolicyTimeout("no answer within 50 ms", "slow")
    await bench.decide()

    assert bench.summed == [("a", "m", "allow"), ("a", "m", "quota"), (None, None, "deny"), ("a", "m", "error")]


async def test_what_must_be_confirmed_is_kept_with_the_lease():
    """What the log says an access still owes comes back when its lease is settled."""
    bench = Bench()
    bench.owed = SimpleNamespace(pack=lambda: b"owed")
    decision = await bench.decide()

    assert (await bench.limiter.settle(decision.facts.id, "k-1", Usage(1, 1))).note == b"owed"
