"""The warm path: CPU per decision against OPA alone and the bare route, in batches, and with many rules."""

import contextlib

from bench.load import Load
from bench.measure import Peer, compare, generator_note, in_turns, warm_up
from bench.questions import batch as batch_of
from bench.questions import hot_tenants
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage, ask_opa, call_route, decide

WARM_OF_OPA = 0.7
BATCH_OF_DECIDE = 0.25
BATCH = 64
MORE_RULES = 1.2
"""What the warm path with 20 rules may cost of that with 5."""
COUNTS = (5, 20, 50)


def warm(stage: Stage, run: Run) -> list[Finding]:
    """Decisions whose terms are all in the memo; readings stand still."""
    hot = hot_tenants()
    peers = [
        Peer("Sluice", decide(stage.sluice, hot, seconds=run.seconds), stage.sluice.pid),
        Peer("OPA alone", ask_opa(stage.opa, hot, seconds=run.seconds), stage.opa.pid),
        Peer("FastAPI route", call_route(stage.fastapi, hot, seconds=run.seconds), stage.fastapi.pid),
    ]
    warm_up(peers)
    sluice, opa, route = in_turns(peers, run.rounds)
    what = "CPU per decision, warm"
    return [
        compare("warm", what, sluice, "OPA alone", opa, budget=WARM_OF_OPA, note=generator_note(sluice)),
        compare("warm", what, sluice, "FastAPI route", route),
    ]


def batch(stage: Stage, run: Run) -> list[Finding]:
    """Many decisions in one request."""
    hot, sluice = hot_tenants(), stage.sluice
    together = Load(sluice.port, "/decide/batch", (batch_of(hot, BATCH),), (1.0,), sluice.credential(), run.seconds, connections=2)
    peers = [Peer("batch", together, sluice.pid, BATCH), Peer("alone", decide(sluice, hot, seconds=run.seconds), sluice.pid)]
    warm_up(peers)
    many, one = in_turns(peers, run.rounds)
    return [compare("batch", f"CPU per decision, batch of {BATCH}", many, "/decide", one, budget=BATCH_OF_DECIDE)]


def rules(stage: Stage, run: Run) -> list[Finding]:
    """The warm path with few rules and with many, and OPA alone with as many."""
    hot = hot_tenants()
    peers = []
    with contextlib.ExitStack() as own:
        for count in COUNTS:
            sluice = own.enter_context(stage.new_sluice(f"Sluice with {count} rules", rules=count))
            opa = own.enter_context(stage.new_opa(sluice.policy))
            peers.append(Peer(sluice.name, decide(sluice, hot, seconds=run.seconds), sluice.pid))
            peers.append(Peer(opa.name, ask_opa(opa, hot, seconds=run.seconds), opa.pid))
        warm_up(peers)
        rounds = in_turns(peers, run.rounds)
    few, findings = rounds[0], []
    for count, measured, opa_rounds in zip(COUNTS, rounds[::2], rounds[1::2], strict=True):
        what = f"CPU per decision, {count} rules"
        findings.append(compare("rules", what, measured, "OPA alone", opa_rounds))
        if count > COUNTS[0]:
            budget = MORE_RULES if count == 20 else None
            findings.append(compare("rules", what, measured, f"{COUNTS[0]} rules", few, budget=budget))
    return findings
