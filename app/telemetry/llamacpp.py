"""llama.cpp's page: one model without a label for it, and no KV gauge since its cache became an inner matter.

A model spec for it declares `signals: [waiting]`. The time of a token is that of one sequence, counted when it ends.
"""

from app.telemetry.names import SECONDS, Mean, Names, Value

NAMES = Names(
    kv=(Value("llamacpp:kv_cache_usage_ratio"),),
    waiting=(Value("llamacpp:requests_deferred"),),
    running=(Value("llamacpp:requests_processing"),),
    iteration=(Mean(Value("llamacpp:tokens_predicted_seconds_total"), Value("llamacpp:tokens_predicted_total"), SECONDS),),
    # Newer versions count decodes, and those before them tell how full the cache is, which each token changes.
    steps=True,
    progress=("llamacpp:prompt_tokens_total", "llamacpp:n_decode_total"),
)
