"""vLLM's page, under the names of v1 and of those before it."""

from app.telemetry.names import SECONDS, Names, Shape, Value, histogram

NAMES = Names(
    kv=(Value("vllm:kv_cache_usage_perc"), Value("vllm:gpu_cache_usage_perc")),
    waiting=(Value("vllm:num_requests_waiting"),),
    running=(Value("vllm:num_requests_running"),),
    # Blocks of a hybrid model differ in size, so their number tells less than the newer label.
    capacity=(
        Shape("vllm:cache_config_info", ("kv_cache_size_tokens",)),
        Shape("vllm:cache_config_info", ("block_size", "num_gpu_blocks")),
    ),
    iteration=(
        histogram("vllm:inter_token_latency_seconds", SECONDS),
        histogram("vllm:time_per_output_token_seconds", SECONDS),
    ),
    ttft=(histogram("vllm:time_to_first_token_seconds", SECONDS),),
    # Tokens are counted as they are generated.
    steps=True,
    progress=("vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
    model_labels=("model_name",),
    rank_labels=("engine", "dp_rank"),
)
