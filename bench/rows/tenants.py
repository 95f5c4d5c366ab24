"""Few tenants against very many: the registry's size must not show on the warm path."""

from bench.measure import Peer, compare, in_turns, warm_up
from bench.questions import hot_tenants
from bench.report import Finding
from bench.rows import Run
from bench.stage import CROWD, Stage, decide

FEW = 10
WITHIN = 1.1


def tenants(stage: Stage, run: Run) -> list[Finding]:
    """The same ten tenants call; in one of the two registries there are CROWD more."""
    hot = hot_tenants(FEW)
    with stage.new_sluice("Sluice with few tenants", hot=FEW) as few:
        peers = [Peer(sluice.name, decide(sluice, hot, seconds=run.seconds), sluice.pid) for sluice in (stage.crowded, few)]
        warm_up(peers)
        crowded, empty = in_turns(peers, run.rounds)
    note = f"the same {FEW} tenants call"
    return [compare("tenants", f"CPU per decision, {CROWD} tenants", crowded, f"{FEW} tenants", empty, budget=WITHIN, note=note)]
