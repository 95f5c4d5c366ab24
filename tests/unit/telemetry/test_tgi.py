"""TGI's page: its queue and batch, and the time of a decode step."""

from app.telemetry.snapshot import Reading
from app.telemetry.tgi import NAMES
from tests.unit.telemetry.pages import of_page, over_time
from tests.unit.telemetry.samples import FOLDER, needs_samples

PAGE = "tgi_queue_size 3\ntgi_batch_current_size 8\ntgi_batch_current_max_tokens 16000\n"


def test_the_signals_of_a_page():
    """The queue waits, the batch runs; tokens that a batch may reach are no KV usage."""
    assert of_page(NAMES, PAGE) == {"": Reading(waiting=3, running=8)}


def test_the_time_of_a_decode_step():
    """5 s over 20 steps are 250 ms: prompts have a series of their own, and do not count."""

    def steps(decode_s, decodes, prefill_s):
        return (
            f'tgi_batch_inference_duration_sum{{method="decode"}} {decode_s}\ntgi_batch_inference_duration_count{{method="decode"}} {decodes}\n'
            f'tgi_batch_inference_duration_sum{{method="prefill"}} {prefill_s}\ntgi_batch_inference_duration_count{{method="prefill"}} 1\n'
        )

    assert [told[""].iteration_ms for told in over_time(NAMES, steps(1, 10, 1), steps(6, 30, 90))] == [None, 250.0]


def test_the_mean_time_of_a_token_where_no_step_is_told():
    """Without the time of a step, a request's mean time per token stands for it: 1 s over 4 requests is 250 ms."""
    name = "tgi_request_mean_time_per_token_duration"
    pages = [f"{name}_sum {s}\n{name}_count {n}\n" for s, n in ((0, 0), (1, 4))]
    assert [told[""].iteration_ms for told in over_time(NAMES, *pages)] == [None, 250.0]


@needs_samples
def test_a_recorded_page():
    """Three wait, eight run."""
    assert of_page(NAMES, (FOLDER / "metrics/tgi_names.prom").read_bytes()) == {"": Reading(waiting=3, running=8)}
