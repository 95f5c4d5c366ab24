"""SGLang's page: with a colon after its name, and with an underscore in some versions.

Where requests have priorities, a series for each stands beside the one of all of them, whose `priority` is empty.
"""

from app.telemetry.names import SECONDS, Mean, Names, Product, Shape, Value, histogram

SEPARATORS = (":", "_")
ALL_PRIORITIES = {"priority": ""}
MOVES_WITH_WORK = ("prompt_tokens_total", "generation_tokens_total", "realtime_tokens_total", "num_used_tokens", "gen_throughput")
"""Token counters grow when a request ends; the others move with its steps."""


def _values(name: str) -> tuple[Value, ...]:
    return tuple(Value(f"sglang{separator}{name}", ALL_PRIORITIES) for separator in SEPARATORS)


def _histograms(*names: str) -> tuple[Mean, ...]:
    return tuple(histogram(f"sglang{separator}{name}", SECONDS) for name in names for separator in SEPARATORS)


NAMES = Names(
    kv=_values("token_usage"),
    waiting=_values("num_queue_reqs"),
    running=_values("num_running_reqs"),
    capacity=(
        *(Product((value,)) for value in _values("max_total_num_tokens")),
        *(Shape(f"sglang{separator}cache_config_info", ("page_size", "num_pages")) for separator in SEPARATORS),
    ),
    iteration=_histograms("inter_token_latency_seconds", "time_per_output_token_seconds"),
    ttft=_histograms("time_to_first_token_seconds"),
    # Tokens in use and the throughput are told anew every few dozen steps, which is several times within five seconds.
    steps=True,
    progress=tuple(f"sglang{separator}{name}" for separator in SEPARATORS for name in MOVES_WITH_WORK),
    model_labels=("model_name", "name"),
    rank_labels=("dp_rank",),
)
