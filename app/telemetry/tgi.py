"""The page of Hugging Face's Text Generation Inference: one model without a label for it, and no KV gauge.

A model spec for it declares `signals: [waiting]`. How many tokens its batch may hold is told, how many it could is not, so that
is no share of a cache. The time of a decode step comes first; the mean time per token of a request has its prompt in it.
"""

from app.telemetry.names import SECONDS, Names, Value, histogram

NAMES = Names(
    waiting=(Value("tgi_queue_size"),),
    running=(Value("tgi_batch_current_size"),),
    iteration=(
        histogram("tgi_batch_inference_duration", SECONDS, {"method": "decode"}),
        histogram("tgi_request_mean_time_per_token_duration", SECONDS),
    ),
    # Its own server counts steps, those with another backend count requests as they end.
    steps=False,
    progress=("tgi_batch_inference_count", "tgi_batch_current_max_tokens", "tgi_request_count", "tgi_request_success"),
)
