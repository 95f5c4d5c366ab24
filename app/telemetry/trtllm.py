"""TensorRT-LLM's page, as a Dynamo worker and trtllm-serve write it.

Older workers tell histograms alone: no queue and no cache, so nothing that a model spec could declare. A worker's page is at
its system port; that of trtllm-serve is at /prometheus/metrics, which makes http://HOST:PORT/prometheus its url.
"""

from app.telemetry.names import SECONDS, Names, Product, Value, histogram

PREFIXES = ("trtllm_", "trtllm:")
"""With an underscore, and with a colon in the first versions under Dynamo."""

NAMES = Names(
    # Dynamo's own gauges tell a share, too, whatever their names say.
    kv=(
        Value("trtllm_kv_cache_utilization"),
        Value("dynamo_component_gpu_cache_usage_percent"),
        Value("dynamo_component_kvstats_gpu_cache_usage_percent"),
    ),
    waiting=(Value("trtllm_num_requests_waiting"),),
    running=(Value("trtllm_num_requests_running"),),
    capacity=(Product((Value("trtllm_kv_cache_max_blocks"), Value("trtllm_kv_cache_tokens_per_block"))),),
    iteration=tuple(histogram(f"{prefix}time_per_output_token_seconds", SECONDS) for prefix in PREFIXES),
    ttft=tuple(histogram(f"{prefix}time_to_first_token_seconds", SECONDS) for prefix in PREFIXES),
    # The time of the last step is told by newer workers; the histograms of the others move as requests end.
    steps=False,
    progress=("trtllm_iteration_latency_seconds", *(f"{prefix}request_success_total" for prefix in PREFIXES)),
    model_labels=("model_name", "model"),
    rank_labels=("dp_rank",),
)
