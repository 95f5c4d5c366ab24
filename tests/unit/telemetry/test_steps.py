"""Which kinds of engines show each step on their page, so that a busy page that stands still says that the engine hangs."""

import aiohttp
import pytest

from app.background import Background
from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings
from app.telemetry.board import Board
from app.telemetry.poller import NAMES, Poller
from tests.unit.telemetry.pages import over_time

STEPS = {
    "vllm": 'vllm:num_requests_running{{model_name="m"}} 1\nvllm:generation_tokens_total{{model_name="m"}} {n}\n',
    "sglang": 'sglang:num_running_reqs{{model_name="m"}} 1\nsglang:num_used_tokens{{model_name="m"}} {n}\n',
    "llamacpp": "llamacpp:requests_processing 1\nllamacpp:n_decode_total {n}\n",
}
"""Two lines of a page after `n` steps of one call that goes on."""


def test_the_kinds_that_show_their_steps():
    """vLLM, SGLang and llama.cpp show every step; the others have pages on which a long call moves nothing."""
    assert {kind for kind, names in NAMES.items() if names.steps} == STEPS.keys()


@pytest.mark.parametrize("kind", STEPS)
def test_a_step_is_movement(kind):
    """A call that goes on moves the page, though none ends; a page that stands still has done no step."""
    told = over_time(NAMES[kind], *(STEPS[kind].format(n=n) for n in (7, 8, 8)))
    assert [reading.still_ms for page in told for reading in page.values()] == [0.0, 0.0, 100.0]


@pytest.mark.parametrize("kind", NAMES)
async def test_a_node_tells_it(kind):
    """Whoever judges a node learns from the snapshot whether its page shows steps, before the first page is read."""
    async with aiohttp.ClientSession() as session:
        board, background = Board(ManualClock()), Background(ManualClock(), Metrics())
        poller = Poller(board, session, background, clock=ManualClock(), metrics=Metrics(), scrape_timeout_ms=100)
        poller.configure([EngineSettings(name="a", kind=kind, url="http://127.0.0.1:9", models=["m"])], {})
        assert board.node("a").steps is (kind in STEPS)
        await background.stop()
