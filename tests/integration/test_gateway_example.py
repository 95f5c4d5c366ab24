"""The gateway in examples/, which docs/how-to/connect-a-gateway.md explains, against a real server and real stand-in engines."""

import importlib.util
from types import ModuleType

import aiohttp
import pytest
import yaml

from tests.fixtures.engine import wait_until
from tests.fixtures.serve import MODEL, ROOT, Serve


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gateway_example", ROOT / "examples" / "gateway.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as session:
        yield session


def gateway(serve: Serve, session: aiohttp.ClientSession, url: str | None = None):
    engines = yaml.safe_load((serve.var / "sluice.yaml").read_text())["engines"]
    nodes = {engine["name"]: engine["url"] for engine in engines}
    return example.Gateway(session, serve.keys["gateway"], url or serve.url, nodes)


async def test_a_completed_stream_is_charged_what_it_took(serve: Serve, session):
    """Of 4 + 100 reserved tokens a stream that ends after 20 keeps 24; its slot is free afterwards."""
    tenant = serve.tenant(tpm=30_000, concurrency=1)

    pieces = [piece async for piece in gateway(serve, session).stream(tenant, MODEL, "a dozen long", 20)]

    assert len(pieces) == 20
    assert serve.leases(tenant) == []
    assert 30_000 - 24 <= serve.remaining(tenant)["tpm"] <= 30_000


async def test_a_client_that_leaves_stops_the_engine_and_frees_the_slot(serve: Serve, session):
    """Closing the stream after its first piece settles the lease as aborted and ends the generation."""
    tenant = serve.tenant(concurrency=1)
    stream = gateway(serve, session).stream(tenant, MODEL, "a dozen long", 5000)

    await anext(stream)
    await stream.aclose()

    assert serve.leases(tenant) == []
    wait_until(lambda: [node["running"] for node in serve.call("GET", "/telemetry").json["nodes"] if node["model"] == MODEL] == [0])


async def test_a_refusal_starts_nothing(serve: Serve, session):
    """What Sluice refuses reaches the client as status and headers, and no engine sees it."""
    tenant = serve.tenant(tpm=10)

    with pytest.raises(example.Refused) as refused:
        await anext(gateway(serve, session).stream(tenant, MODEL, "a dozen long", 20))

    assert refused.value.status == 429
    assert refused.value.headers == {"x-should-retry": "false"}  # 24 tokens never fit into 10


async def test_without_sluice_the_client_is_told_to_come_back(serve: Serve, session):
    """A gateway that gets no decision answers 503 with a time to come back."""
    with pytest.raises(example.Refused) as refused:
        await anext(gateway(serve, session, "http://127.0.0.1:1").stream("tenant", MODEL, "a dozen long", 20))

    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "3"})


def test_the_guide_shows_the_example_as_it_is():
    """The text of the example stands in the guide unchanged."""
    guide = (ROOT / "docs" / "how-to" / "connect-a-gateway.md").read_text("utf-8")
    assert (ROOT / "examples" / "gateway.py").read_text("utf-8") in guide
