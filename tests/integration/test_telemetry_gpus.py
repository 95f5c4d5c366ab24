"""Device memory through the telemetry process: from the pages of exporters to the view of a reader, as the settings change."""

import asyncio
import contextlib

import aiohttp

from app.catalog.models import ModelSpec
from app.clock import SystemClock
from app.observability.metrics import Metrics
from app.telemetry.build_view import build_view
from app.telemetry.configuration import load
from app.telemetry.room import memories
from app.telemetry.server import build_app
from app.telemetry.wire import decode
from tests.fixtures.engine import serving
from tests.fixtures.replacing import NOTICED_WITHIN_S
from tests.fixtures.telemetry import raw_engine


def answer(text):
    body = text.encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)


def exporter(gpu, used, free):
    return raw_engine(answer(f'DCGM_FI_DEV_FB_USED{{UUID="{gpu}"}} {used}\nDCGM_FI_DEV_FB_FREE{{UUID="{gpu}"}} {free}\n'))


def engine():
    return raw_engine(answer('vllm:kv_cache_usage_perc{model_name="m"} 0.5\nvllm:num_requests_waiting{model_name="m"} 0\n'))


def write(folder, engine_url, gpu, exporters):
    (folder / "models.yaml").write_text("- {id: m}\n")
    (folder / "sluice.yaml").write_text(
        f"models: models.yaml\n"
        f'engines: [{{name: a, url: "{engine_url}", models: [m], gpus: [{gpu}], poll_ms: 50}}]\n'
        f"gpus: {{nvml: off, nvidia_smi: off, interval_ms: 100, dcgm: {exporters}}}\n"
    )
    return folder / "sluice.yaml"


@contextlib.asynccontextmanager
async def reading(file):
    """Asks the process for its newest snapshot, as rules would read it."""
    app = build_app(file, load(file), clock=SystemClock(), metrics=Metrics(), token=None)
    async with serving(app) as url, aiohttp.ClientSession(url) as session:

        async def memory():
            async with session.get("/snapshot") as response:
                snapshot = decode(await response.read())
                view = build_view(snapshot, {"m": ModelSpec(id="m")}, memories(snapshot, 1000), stale_ms=1000)
            return view.models["m"].readings.get("memory")

        yield memory


async def comes(memory, wanted):
    async with asyncio.timeout(NOTICED_WITHIN_S):
        while True:
            if await memory() == wanted:
                return
            await asyncio.sleep(0.02)


async def test_memory_follows_the_settings(tmp_path):
    """A node's GPU is told by its exporter; another GPU or another exporter in the file counts without a restart."""
    async with engine() as node, exporter("GPU-a", 25, 75) as one, exporter("GPU-b", 60, 40) as two:
        file = write(tmp_path, node, "GPU-a", [one])
        async with reading(file) as memory:
            await comes(memory, 0.25)
            write(tmp_path, node, "GPU-b", [one])
            await comes(memory, None)
            write(tmp_path, node, "GPU-b", [one, two])
            await comes(memory, 0.6)
            write(tmp_path, node, "GPU-b", [])
            await comes(memory, None)


async def test_memory_of_a_silent_exporter_becomes_unknown(tmp_path):
    """Its last figure counts for the second in which a page counts, and then no figure does."""
    async with engine() as node, contextlib.AsyncExitStack() as up:
        url = await up.enter_async_context(exporter("GPU-a", 25, 75))
        async with reading(write(tmp_path, node, "GPU-a", [url])) as memory:
            await comes(memory, 0.25)
            await up.aclose()
            await comes(memory, None)
