"""Triton's page: several models, each in several versions, which add up.

Its TensorRT-LLM backend tells a queue, a batch and a cache of its own. Every other model has only Triton's queue, so its spec
declares `signals: [waiting]`. The time to the first token is that of the first response, which a server tells where it is
started so; else the mean time of whole requests stands for it: the same where a model answers in one piece, and longer
where it streams.
"""

from app.telemetry.names import MICROSECONDS, MILLISECONDS, Mean, Names, Product, Value, histogram

BLOCKS = "nv_trt_llm_kv_cache_block_metrics"
REQUESTS = "nv_trt_llm_request_metrics"

NAMES = Names(
    kv=(Value(BLOCKS, {"kv_cache_block_type": "fraction"}),),
    waiting=(Value(REQUESTS, {"request_type": "waiting"}), Value("nv_inference_pending_request_count")),
    running=(Value(REQUESTS, {"request_type": "scheduled"}),),
    capacity=(Product((Value(BLOCKS, {"kv_cache_block_type": "max"}), Value(BLOCKS, {"kv_cache_block_type": "tokens_per"}))),),
    ttft=(
        histogram("nv_inference_first_response_histogram_ms", MILLISECONDS),
        Mean(Value("nv_inference_request_duration_us"), Value("nv_inference_request_success"), MICROSECONDS),
    ),
    # Requests are counted as they end; only the TensorRT-LLM backend tells a cache that fills meanwhile.
    steps=False,
    progress=("nv_inference_count", "nv_inference_exec_count", "nv_inference_compute_infer_duration_us"),
    model_labels=("model",),
    rank_labels=("version",),
)
