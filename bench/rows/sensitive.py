"""A decision about a sensitive model: what its entry, committed before the answer, costs beside an ordinary decision."""

from bench.load import Load
from bench.measure import Attribute, Peer, Round, compare, in_turns, warm_up
from bench.questions import MODELS, hot_tenants, request
from bench.report import Finding
from bench.rows import Run
from bench.servers import Sluice
from bench.stage import Stage

SENSITIVE = "mdl-fin-risk-v3"
SUBJECT = {"id": "analyst-{k}", "roles": ["risk-analyst"], "attributes": {"clearance": 3}}
SUBJECTS = 100
"""People who call again and again: each one's key is made once."""
RATE = 100.0
CONNECTIONS = 16
MANY = 10_000


def sensitive(stage: Stage, run: Run) -> list[Finding]:
    """The same requests for an ordinary and for a sensitive model, at a steady rate."""
    url = f"http://127.0.0.1:{stage.engines[0].port}"
    engines = [{"name": model, "url": url, "models": [model], "max_num_seqs": MANY} for model in (MODELS[0], SENSITIVE)]
    with stage.new_sluice("Sluice with a sensitive model", engines=engines) as sluice:
        peers = [Peer(model, _load(sluice, model, run), sluice.pid) for model in (SENSITIVE, MODELS[0])]
        warm_up(peers)
        guarded, ordinary = in_turns(peers, run.rounds)
    return [
        compare("sensitive", f"{name}, sensitive model", guarded, "ordinary", ordinary, attribute=attribute)
        for name, attribute in ATTRIBUTES.items()
    ]


def _p50_ms(each: Round) -> float:
    return each.outcome.p50_ms


def _p99_ms(each: Round) -> float:
    return each.p99_ms


def _cpu_ms(each: Round) -> float:
    """PostgreSQL's and the log's share included."""
    return each.cpu_us / 1000


ATTRIBUTES: dict[str, Attribute] = {"p50": _p50_ms, "p99": _p99_ms, "CPU, all processes": _cpu_ms}


def _load(sluice: Sluice, model: str, run: Run) -> Load:
    body = request(hot_tenants()[0], model, purpose="credit-risk", subject=SUBJECT)
    return Load(
        sluice.port,
        "/decide",
        (body,),
        (1.0,),
        sluice.credential(),
        seconds=run.steady_seconds,
        rate=RATE,
        connections=CONNECTIONS,
        span=SUBJECTS,
    )
