"""Reading pages by a table of names: ranks and slices, models that share a page, values that cannot be, caches in tokens."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.telemetry import llamacpp, sglang, tgi, triton, trtllm, vllm
from app.telemetry.exposition import PageBroken
from app.telemetry.names import SECONDS, Names, Product, Shape, Value, histogram
from app.telemetry.pages import Pages
from app.telemetry.snapshot import Reading
from tests.unit.telemetry.pages import TEXT, of_page

NAMES = Names(
    kv=(Value("kv_new"), Value("kv_old")),
    waiting=(Value("waiting", {"kind": ""}),),
    running=(Value("requests", {"state": "running"}),),
    capacity=(Product((Value("blocks"), Value("block_tokens"))), Shape("shape", ("blocks", "size"))),
    iteration=(histogram("step_seconds", SECONDS),),
    ttft=(histogram("first_seconds", SECONDS),),
    progress=("tokens_total",),
    model_labels=("model",),
    rank_labels=("dp_rank",),
)
ENGINES = {one.__name__.rpartition(".")[2]: one.NAMES for one in (llamacpp, sglang, tgi, triton, trtllm, vllm)}


def read(text, model="m"):
    return of_page(NAMES, text)[model]


def counted(text, model="m"):
    page = Pages(NAMES).read(text.encode(), TEXT)[model]
    return page.ttft and {rank: (total.sum, total.count) for rank, total in page.ttft.totals.items()}


def test_ranks():
    """Over data-parallel ranks KV is the largest and counts add up; tensor, pipeline and expert slices count once."""
    text = "".join(
        f'{name}{{model="m",dp_rank="{rank}",{slices}}} {value}\n'
        for name, rank, slices, value in [
            ("kv_new", 0, 'tp_rank="0",pp_rank="0"', 0.2),
            ("kv_new", 0, 'tp_rank="1",pp_rank="0"', 0.3),
            ("kv_new", 1, 'tp_rank="0",pp_rank="0"', 0.25),
            ("waiting", 0, 'tp_rank="0",moe_ep_rank="0"', 7),
            ("waiting", 0, 'tp_rank="0",moe_ep_rank="1"', 7),
            ("waiting", 1, 'tp_rank="0",moe_ep_rank="0"', 2),
        ]
    )
    assert read(text) == Reading(kv_ratio=0.3, waiting=9)


def test_parts_of_a_rank():
    """What a label splits adds up, but for KV, of which the largest counts."""
    text = "".join(
        f'{name}{{model="m",team="{team}"}} {value}\n'
        for name, team, value in [("kv_new", "a", 0.4), ("kv_new", "b", 0.5), ("waiting", "a", 3), ("waiting", "b", 4)]
    )
    assert read(text) == Reading(kv_ratio=0.5, waiting=7)


def test_labels_pick_a_value():
    """Of a name that carries several values the one with the wanted labels counts; an empty label is an absent one."""
    text = 'requests{model="m",state="running"} 3\nrequests{model="m",state="paused"} 9\n'
    text += 'waiting{model="m"} 5\nwaiting{model="m",kind="urgent"} 4\n'
    assert read(text) == Reading(waiting=5, running=3)
    assert read('waiting{model="m",kind=""} 5\nwaiting{model="m",kind="urgent"} 4\n') == Reading(waiting=5)


def test_the_newest_name_wins():
    """On a page with both names the new one counts, even where it is impossible: the old may be a leftover."""
    old = 'kv_old{model="m"} 0.1\n'
    assert read(old).kv_ratio == 0.1
    assert read(old + 'kv_new{model="m"} 0.93\n').kv_ratio == 0.93
    assert read(old + 'kv_new{model="m"} NaN\n').kv_ratio is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-0.01", "87.5", "1.0001"])
def test_impossible_kv_is_unknown(value):
    """A KV usage outside 0..1 is unknown, never 0 and never taken for a percentage."""
    assert read(f'kv_new{{model="m"}} {value}\nwaiting{{model="m"}} 4\n') == Reading(waiting=4)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "2.5", "1e300", "9007199254740993e3"])
def test_impossible_counts_are_unknown(value):
    """A count that is no whole number from 0 that a page can hold exactly is unknown."""
    assert read(f'waiting{{model="m"}} {value}\nkv_new{{model="m"}} 0.5\n') == Reading(kv_ratio=0.5)


def test_one_unknown_rank_makes_the_reading_unknown():
    """A rank whose value is impossible may be the fullest, so the whole reading is unknown, and the others stand."""
    text = 'kv_new{model="m",dp_rank="0"} 0.2\nkv_new{model="m",dp_rank="1"} NaN\nwaiting{model="m"} 4\n'
    assert read(text) == Reading(waiting=4)


def test_a_signal_that_lacks_a_rank_is_unknown():
    """A page that was cut tells some ranks of one signal and all of another: the missing one may be the fullest."""
    whole = "".join(f'{name}{{model="m",dp_rank="{rank}"}} 1\n' for name in ("waiting", "kv_new") for rank in (0, 1))
    assert read(whole) == Reading(kv_ratio=1.0, waiting=2)
    assert read(whole[: whole.rindex("kv_new")]) == Reading(waiting=2)
    assert read('waiting{model="m"} 1\nkv_new{model="m",dp_rank="0"} 1\n') == Reading(kv_ratio=1.0, waiting=1)


def test_models_are_kept_apart():
    """Two models on one page have readings of their own; a series without a model belongs to neither."""
    text = 'kv_new{model="m"} 0.1\nkv_new{model="n"} 0.9\nkv_new 0.5\nwaiting 3\n'
    assert of_page(NAMES, text) == {"m": Reading(kv_ratio=0.1), "n": Reading(kv_ratio=0.9)}


def test_a_series_without_a_model_is_of_the_only_one():
    """Beside one named model a nameless series speaks of that, but where its own stands; alone it speaks of a nameless one."""
    assert of_page(NAMES, 'kv_new{model="m"} 0.1\nkv_new 0.5\nwaiting 3\n') == {"m": Reading(kv_ratio=0.1, waiting=3)}
    assert of_page(NAMES, 'kv_new 0.5\nwaiting{model=""} 3\n') == {"": Reading(kv_ratio=0.5, waiting=3)}


def test_an_empty_page_tells_nothing():
    """A page without a known series has no readings, not readings of 0."""
    assert of_page(NAMES, "") == {}
    assert of_page(NAMES, 'kv_newest{model="m"} 0.1\nmy_kv_new{model="m"} 0.1\nkv_new_sum{model="m"} 0.1\n') == {}


def shaped(*lines):
    kv = 'kv_new{model="m",dp_rank="0"} 0.5\nkv_new{model="m",dp_rank="1"} 0.75\n'
    told = read(kv + "".join(f"{line}\n" for line in lines))
    return told.capacity_tokens, told.free_tokens


@pytest.mark.parametrize(
    ("lines", "tokens"),
    [
        # 100 blocks of 16 on each rank: half of 1600 is free on one, a quarter of 1600 on the other
        (['shape{blocks="100",size="16"} 1'], (3200, 800 + 400)),
        (['shape{blocks="100",size="16",dp_rank="0"} 1', 'shape{blocks="200",size="16",dp_rank="1"} 1'], (4800, 800 + 800)),
        (['shape{blocks="100",size="16",dp_rank="0"} 1'], (None, None)),
        (['shape{blocks="100",size="16"} 1', 'shape{blocks="200",size="16"} 1'], (None, None)),
        (['shape{blocks="None",size="16"} 1'], (None, None)),
        (['shape{blocks="99999999999999999",size="16"} 1'], (None, None)),
        (['shape{size="16"} 1'], (None, None)),
        (['blocks{model="m"} 100', 'block_tokens{model="m"} 16', 'shape{blocks="7",size="7"} 1'], (3200, 1200)),
        (['blocks{model="m"} 100', 'shape{blocks="100",size="16"} 1'], (None, None)),
        (['blocks{model="m"} NaN', 'block_tokens{model="m"} 16'], (None, None)),
        ([], (None, None)),
    ],
)
def test_the_cache_in_tokens(lines, tokens):
    """Blocks times their size over the ranks, and what is free of that; unknown where a rank's shape is."""
    assert shaped(*lines) == tokens


def test_a_shape_without_a_model_is_nobodys_beside_two():
    """Of two models on one page, a cache that names neither could be either's: its size is unknown for both."""
    text = 'kv_new{model="m"} 0.5\nkv_new{model="n"} 0.5\nshape{blocks="100",size="16"} 1\n'
    assert of_page(NAMES, text) == {"m": Reading(kv_ratio=0.5), "n": Reading(kv_ratio=0.5)}


def test_a_full_cache_is_no_unknown_one():
    """The capacity is told also where KV is not, and no room is 0 tokens, not unknown."""
    assert read('shape{model="m",blocks="100",size="16"} 1\n') == Reading(capacity_tokens=1600, rank_tokens=1_600)
    assert read('shape{model="m",blocks="100",size="16"} 1\nkv_new{model="m"} 1\n').free_tokens == 0


def test_totals_by_rank():
    """Sums and counts are kept by rank, and their parts add up; `_created` series are not read."""
    text = "".join(
        f'first_seconds_{part}{{model="m",dp_rank="{rank}",team="{team}"}} {value}\n'
        for part, rank, team, value in [
            ("sum", 0, "a", 1.5),
            ("sum", 0, "b", 2.0),
            ("sum", 1, "a", 4.0),
            ("count", 0, "a", 10),
            ("count", 0, "b", 20),
            ("count", 1, "a", 40),
            ("created", 0, "a", 1.7e9),
        ]
    )
    assert counted(text) == {("0",): (3.5, 30.0), ("1",): (4.0, 40.0)}


@pytest.mark.parametrize(
    "lines",
    [
        ["sum{} 1"],
        ["count{} 1"],
        ["sum{} NaN", "count{} 1"],
        ["sum{} -1", "count{} 1"],
        ["sum{} 1", "count{} +Inf"],
        ['sum{dp_rank="0"} 1', 'sum{dp_rank="1"} 1', 'count{dp_rank="0"} 1'],
    ],
)
def test_totals_that_lack_something_are_unknown(lines):
    """A sum without its count on any rank, or a value that no counter can hold, is no total at all."""
    text = "".join(f"first_seconds_{line}\n" for line in lines)
    assert counted(text, model="") is None


@pytest.mark.parametrize(
    ("engine", "size"),
    [
        ("vllm", 'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{blocks}"}} 1\nvllm:kv_cache_usage_perc 0\n'),
        ("sglang", "sglang:max_total_num_tokens {blocks}\nsglang:token_usage 0\n"),
        ("sglang", 'sglang:cache_config_info{{page_size="16",num_pages="{blocks}"}} 1\nsglang:token_usage 0\n'),
        ("trtllm", "trtllm_kv_cache_max_blocks {blocks}\ntrtllm_kv_cache_tokens_per_block 16\ntrtllm_kv_cache_utilization 0\n"),
        (
            "triton",
            (
                'nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="max"}} {blocks}\n'
                'nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="tokens_per"}} 16\n'
                'nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="fraction"}} 0\n'
            ),
        ),
    ],
)
def test_no_engine_has_a_cache_of_size_0(engine, size):
    """A page that tells a cache of 0 has not measured it: its size and what fits are unknown, while its usage is known."""
    (empty,) = of_page(ENGINES[engine], size.format(blocks=0)).values()
    assert empty == Reading(kv_ratio=0.0)
    (full,) = of_page(ENGINES[engine], size.format(blocks=100)).values()
    assert full.free_tokens == full.capacity_tokens > 0


def progress(*lines):
    (page,) = Pages(NAMES).read("".join(f"{line}\n" for line in lines).encode(), TEXT).values()
    return page.progress


def test_progress_is_every_value_that_was_read():
    """Any gauge or counter that moves changes it; what is not read, and NaN that stays NaN, does not."""
    still = progress('kv_new{model="m"} NaN', 'tokens_total{model="m"} 5', "other 1")
    assert still == progress('kv_new{model="m"} NaN', 'tokens_total{model="m"} 5', "other 2")
    assert still != progress('kv_new{model="m"} NaN', 'tokens_total{model="m"} 6', "other 1")
    assert still != progress('kv_new{model="m"} 0.5', 'tokens_total{model="m"} 5', "other 1")


def test_places_are_forgotten_with_their_series(monkeypatch):
    """An engine that invents labels for ever does not fill the memory, and is read right all the while."""
    monkeypatch.setattr("app.telemetry.pages.MOST_SERIES", 50)
    pages = Pages(NAMES)
    for number in range(500):
        told = pages.read(f'waiting{{model="{number}"}} {number}\n'.encode(), TEXT)
        assert told[str(number)].reading == Reading(waiting=number)

    assert len(pages._places) <= 52


NAME = st.sampled_from(sorted(set().union(*(names.wanted for names in ENGINES.values()))))
LABELS = st.dictionaries(st.sampled_from(["model", "model_name", "dp_rank", "tp_rank", "version", "request_type"]), st.sampled_from("01"))
LINE = st.tuples(NAME, LABELS, st.floats())


def _labels(labels):
    return ",".join(f'{label}="{value}"' for label, value in labels.items())


@given(st.sampled_from(sorted(ENGINES)), st.lists(LINE, max_size=20))
def test_whatever_values_come_a_reading_is_possible_or_unknown(engine, lines):
    """No page makes a KV usage outside 0..1, a count below 0, a NaN, or more room than there is."""
    text = "".join(f"{name}{{{_labels(labels)}}} {value}\n" for name, labels, value in lines)
    for told in of_page(ENGINES[engine], text).values():
        assert told.kv_ratio is None or 0 <= told.kv_ratio <= 1
        for count in (told.waiting, told.running, told.capacity_tokens, told.free_tokens):
            assert count is None or (isinstance(count, int) and count >= 0)
        assert told.free_tokens is None or told.free_tokens <= (told.capacity_tokens or math.inf)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html><body>upstream is starting</body></html>\n", "text/plain"),
        (b"<html><body>upstream is starting</body></html>\n", "text/html"),
        (b'[{"iter": 1, "kvCacheStats": {}}]', "application/json"),
        (b'{"error": "no metrics"}', "text/plain"),
    ],
)
def test_what_is_no_page_is_refused_for_every_engine(engine, body, content_type):
    """HTML and JSON with status 200 are no page, under their own type or that of text."""
    with pytest.raises(PageBroken):
        Pages(ENGINES[engine]).read(body, content_type)
