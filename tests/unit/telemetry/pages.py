"""Small pages of our own, in the shapes that engines write, and the model specs that go with them."""

from app.catalog.models import ModelSpec

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
