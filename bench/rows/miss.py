"""Nothing in the memo: each request is a tenant's first, one at a time and then many at once."""

from dataclasses import replace

from bench.joined import PATH
from bench.load import Load
from bench.measure import Peer, compare, in_turns, warm_up
from bench.questions import NUMBERED, question, request
from bench.report import Finding
from bench.rows import Run
from bench.stage import CROWD, Stage

LONE, TOGETHER = 1, 16
"""Requests on their way at once."""


def miss(stage: Stage, run: Run) -> list[Finding]:
    """CPU per decision where OPA has to be asked for every one."""
    sluice = stage.crowded
    findings = []
    for what, connections in (("lone miss", LONE), (f"all quotas distinct, {TOGETHER} at once", TOGETHER)):
        load = Load(sluice.port, "/decide", (request(NUMBERED),), (1.0,), seconds=run.seconds, connections=connections, span=CROWD)
        peers = [
            Peer("Sluice", replace(load, headers=sluice.credential()), sluice.pid, may_refuse=True),
            Peer("OPA alone", replace(load, port=stage.opa.port, path=PATH, bodies=(question(NUMBERED),)), stage.opa.pid),
            Peer("FastAPI route", replace(load, port=stage.fastapi.port), stage.fastapi.pid),
        ]
        warm_up(peers[1:])
        missed, opa, route = in_turns(peers, run.rounds)
        findings += [
            compare("miss", f"CPU per decision, {what}", missed, name, peer)
            for name, peer in (("OPA alone", opa), ("FastAPI route", route))
        ]
    return findings
