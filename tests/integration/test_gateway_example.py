"""The gateway in examples/, which docs/how-to/connect-a-gateway.md describes, beside a real server and stand-in engines.

What a real server cannot be made to do (an obligation, a lost answer, a replay) a scripted one does.
"""

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from types import ModuleType

import aiohttp
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.clock import SystemClock
from app.simulator.completions import build_app
from app.simulator.engine import Engine, EngineConfig
from app.simulator.faults import Fault
from tests.fixtures.engine import serving
from tests.fixtures.serve import MODEL, ROOT, Serve
from tests.fixtures.waiting import wait_until

PROGRAM = ROOT / "examples" / "gateway.py"
NOBODY = "http://127.0.0.1:1"
ADMITTED = {
    "decision_id": "lease-1",
    "allow": True,
    "replayed": False,
    "node": "vllm-0",
    "headers": {"RateLimit": "…"},
    "obligations": [],
    "lease": {"expires_in_ms": 30_000},
}


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gateway_example", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as session:
        yield session


def nodes_of(serve: Serve) -> dict[str, str]:
    return {engine["name"]: engine["url"] for engine in yaml.safe_load((serve.var / "sluice.yaml").read_text())["engines"]}


def gateway(serve: Serve, session: aiohttp.ClientSession, nodes: dict[str, str] | None = None):
    return example.Gateway(session, serve.keys["gateway"], serve.url, nodes or nodes_of(serve))


def question(tenant: str, max_tokens: int = 20) -> dict:
    return {"tenant": tenant, "model": MODEL, "prompt_tokens": 4, "max_tokens": max_tokens}


def body(max_tokens: int = 20) -> dict:
    return {"model": MODEL, "prompt": "a dozen long", "max_tokens": max_tokens}


@contextlib.asynccontextmanager
async def streaming(gateway, tenant: str) -> AsyncIterator[tuple]:
    """A long stream of an admitted call, left before its end or not."""
    async with gateway.admit(question(tenant, 5000)) as call, contextlib.aclosing(gateway.stream(call, body(5000))) as pieces:
        yield call, pieces


@contextlib.asynccontextmanager
async def engine() -> AsyncIterator[tuple[Engine, str]]:
    """An engine of the test's own, which it may break."""
    engine = Engine(EngineConfig(MODEL, ttft_ms=4, itl_ms=2), SystemClock())
    async with serving(build_app(engine)) as url:
        yield engine, url


class ScriptedSluice:
    """Answers /decide with one document, and each lease call with the next of `statuses`, then 200; keeps what it was told."""

    def __init__(self, decision: dict, statuses: Sequence[int] = ()) -> None:
        self.decision, self.statuses, self.told = decision, list(statuses), []
        routes = [Route("/decide", self._decide, methods=["POST"]), Route("/leases/{id}/{verb}", self._lease, methods=["POST"])]
        self.app = Starlette(routes=routes)

    async def _decide(self, _: Request) -> JSONResponse:
        return JSONResponse(self.decision)

    async def _lease(self, request: Request) -> JSONResponse:
        self.told.append((request.path_params["verb"], await request.json()))
        return JSONResponse({}, self.statuses.pop(0) if self.statuses else 200)

    @contextlib.asynccontextmanager
    async def gateway(self, session: aiohttp.ClientSession, node: str = NOBODY) -> AsyncIterator:
        async with serving(self.app) as url:
            yield example.Gateway(session, "key", url, {"vllm-0": node})


async def test_a_completed_stream_is_charged_what_the_engine_counted(serve: Serve, session):
    """Of 4 + 100 reserved tokens a stream of 12 characters (3 tokens) that ends after 20 keeps 23; its slot is free afterwards."""
    tenant = serve.tenant(tpm=30_000, concurrency=1)

    async with gateway(serve, session).admit(question(tenant, 100)) as call:
        pieces = [piece async for piece in gateway(serve, session).stream(call, body())]

    assert len(pieces) == 20
    assert call.usage == {"prompt_tokens": 3, "completion_tokens": 20}
    assert serve.leases(tenant) == []
    assert 30_000 - 23 <= serve.remaining(tenant)["tpm"] <= 30_000


async def test_an_admitted_client_gets_its_headers(serve: Serve, session):
    """What the tenant has left is at hand for the client before the first piece."""
    async with gateway(serve, session).admit(question(serve.tenant(tpm=30_000))) as call:
        assert '"tpm";r=29976' in call.headers["RateLimit"]


async def test_a_client_that_leaves_stops_the_engine_and_frees_the_slot(serve: Serve, session):
    """Closing the stream after its first piece settles the lease as aborted and ends the generation."""
    tenant = serve.tenant(concurrency=1)

    async with streaming(gateway(serve, session), tenant) as (call, pieces):
        await anext(pieces)

    assert (call.outcome, call.usage) == ("aborted", {"completion_tokens": 1})
    assert serve.leases(tenant) == []
    wait_until(lambda: [node["running"] for node in serve.call("GET", "/telemetry").json["nodes"] if node["model"] == MODEL] == [0])


@pytest.mark.parametrize("answers", [False, True], ids=["nobody listens", "the engine refuses"])
async def test_what_no_engine_began_is_given_back_whole(serve: Serve, session, answers):
    """An engine that cannot be reached is reported as failed, one that refuses cancels the lease: tokens and slot are back."""
    tenant = serve.tenant(tpm=600, concurrency=1)
    node = f"{serve.url}/no-engine" if answers else NOBODY

    with pytest.raises(example.EngineFailed):
        async with gateway(serve, session, {"vllm-0": node}).admit(question(tenant, 500)) as call:
            await anext(gateway(serve, session, {"vllm-0": node}).stream(call, body()))

    assert serve.leases(tenant) == []
    assert serve.remaining(tenant)["tpm"] == 600


async def test_an_engine_that_dies_is_settled_as_failed_with_the_tokens_so_far(serve: Serve, session):
    """A restart in the middle of a stream ends it with an error; what had come is reported, and the slot is free."""
    tenant = serve.tenant(concurrency=1)

    async with engine() as (broken, url), streaming(gateway(serve, session, {"vllm-0": url}), tenant) as (call, pieces):
        await anext(pieces)
        broken.set_fault(Fault("restart"))
        with pytest.raises(example.EngineFailed, match="restarted"):
            _ = [piece async for piece in pieces]

    assert call.outcome == "failed"
    assert call.usage["completion_tokens"] >= 1
    assert serve.leases(tenant) == []


async def test_a_refusal_starts_nothing(serve: Serve, session):
    """What Sluice refuses reaches the client as status and headers, and no engine sees it."""
    with pytest.raises(example.Refused) as refused:
        async with gateway(serve, session).admit(question(serve.tenant(tpm=10))):
            pass

    assert refused.value.status == 429
    assert refused.value.headers == {"x-should-retry": "false"}  # 24 tokens never fit into 10


async def test_a_wrong_key_is_told_with_what_to_do(serve: Serve, session):
    """Sluice's own words about the gateway's key reach whoever runs the gateway."""
    with pytest.raises(example.Misused, match=r"401 the key is unknown\. Send Authorization"):
        async with example.Gateway(session, "wrong", serve.url).admit(question("tenant")):
            pass


async def test_without_sluice_the_client_is_told_to_come_back(session):
    """A gateway that gets no decision answers 503 with a time to come back."""
    with pytest.raises(example.Refused) as refused:
        async with example.Gateway(session, "key", NOBODY).admit(question("tenant")):
            pass

    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "3"})


async def test_an_obligation_that_it_cannot_meet_starts_nothing(session):
    """An obligation other than audit is refused and the lease given back, since this gateway meets none."""
    sluice = ScriptedSluice(ADMITTED | {"obligations": [{"code": "audit"}, {"code": "mask", "fields": ["name"]}]})

    async with sluice.gateway(session) as gateway:
        with pytest.raises(example.Refused, match="no way to mask"):
            async with gateway.admit(question("tenant")):
                pass

    assert sluice.told == [("cancel", {})]


async def test_a_replay_of_what_it_began_is_not_begun_again(session):
    """A replayed decision starts a generation where the first answer was lost, and none where this gateway has begun it."""
    sluice = ScriptedSluice(ADMITTED | {"replayed": True})

    async with sluice.gateway(session) as gateway:
        async with gateway.admit(question("tenant")) as call:
            assert call.lease == "lease-1"
        with pytest.raises(example.Refused, match="already_begun"):
            async with gateway.admit(question("tenant")):
                pass

    assert sluice.told == [("cancel", {})]  # the first one's, which no engine began


async def test_an_end_is_told_until_sluice_answers(session):
    """A settle that gets a 503 is sent again as it was; a lease that is forgotten (404) is let go."""
    sluice = ScriptedSluice(ADMITTED, [503, 404])

    async with engine() as (_, url), sluice.gateway(session, url) as gateway, gateway.admit(question("tenant")) as call:
        assert len([piece async for piece in gateway.stream(call, body())]) == 20

    assert sluice.told == [("settle", {"outcome": "completed", "prompt_tokens": 3, "completion_tokens": 20})] * 2


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)


def test_the_command_shows_what_a_client_gets(serve: Serve):
    """Run as a program it shows status, headers and text; a refusal, a wrong key and missing arguments are told in a line."""
    places = [f"--sluice={serve.url}", f"--node=vllm-0={nodes_of(serve)['vllm-0']}", f"--tenant={serve.tenant(tpm=1000)}"]

    done = run(serve.keys["gateway"], "a prompt", *places, "--max-tokens=3")
    refused = run(serve.keys["gateway"], "a prompt", *places, "--max-tokens=1001")
    wrong = run("wrong", "a prompt", *places)
    nothing = run()

    assert (done.returncode, done.stdout[:4], done.stdout.splitlines()[-1]) == (0, "200\n", "token token token ")
    assert (refused.returncode, refused.stdout) == (1, "429\nx-should-retry: false\n\n")
    assert '"code": "over_capacity"' in refused.stderr
    assert (wrong.returncode, wrong.stdout) == (1, "500\n\n")
    assert wrong.stderr.startswith("Sluice refuses this gateway: 401 the key is unknown. ")
    assert nothing.returncode == 2
    assert "KEY, PROMPT" in nothing.stderr
