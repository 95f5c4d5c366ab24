"""Small pages of our own, in the shapes that engines write, and the model specs that go with them."""

from app.catalog.models import ModelSpec
from app.telemetry.history import History
from app.telemetry.pages import Pages

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

SPEC = ModelSpec(id="m")
WAITING_ONLY = ModelSpec(id="w", signals=("waiting",))


def page(kv: object = 0.5, waiting: object = 4, running: object = 2, model: str = "m") -> bytes:
    """A page of one engine with one model."""
    labels = f'{{engine="0",model_name="{model}"}}'
    return (
        f"vllm:num_requests_running{labels} {running}\nvllm:num_requests_waiting{labels} {waiting}\nvllm:kv_cache_usage_perc{labels} {kv}\n"
    ).encode()


def of_page(names, text):
    """What one page says at its moment, by model: the readings without those that need time."""
    body = text if isinstance(text, bytes) else text.encode()
    return {model: one.reading for model, one in Pages(names).read(body, TEXT).items()}


def over_time(names, *texts, step_ms=100.0):
    """What an engine's readings are after each of the pages, by model."""
    pages, history = Pages(names), History()
    return [history.push(pages.read(text.encode(), TEXT), number * step_ms) for number, text in enumerate(texts)]
