"""llama.cpp's page: no label for its model, and a KV gauge in old versions alone."""

from app.telemetry.llamacpp import NAMES
from app.telemetry.snapshot import Reading
from tests.unit.telemetry.pages import of_page, over_time
from tests.unit.telemetry.samples import FOLDER, needs_samples

PAGE = "llamacpp:requests_processing 4\nllamacpp:requests_deferred 46\nllamacpp:predicted_tokens_seconds nan\n"


def test_the_signals_of_a_page():
    """Deferred requests wait; KV is unknown, since no gauge tells it."""
    assert of_page(NAMES, PAGE) == {"": Reading(waiting=46, running=4)}


def test_the_kv_gauge_of_old_versions():
    """A version that still tells its KV usage is believed."""
    assert of_page(NAMES, PAGE + "llamacpp:kv_cache_usage_ratio 0.63\n")[""].kv_ratio == 0.63


def test_the_time_of_a_token():
    """12 s for 48 more tokens are 250 ms a token."""
    pages = [f"llamacpp:tokens_predicted_seconds_total {s}\nllamacpp:tokens_predicted_total {n}\n" for s, n in ((3, 10), (15, 58))]
    assert [told[""].iteration_ms for told in over_time(NAMES, *pages)] == [None, 250.0]


@needs_samples
def test_a_recorded_page():
    """The page of a server with four slots: all busy, 46 deferred."""
    assert of_page(NAMES, (FOLDER / "metrics/llamacpp_names.prom").read_bytes()) == {"": Reading(waiting=46, running=4)}
