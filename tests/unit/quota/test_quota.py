"""Quotas as values."""

from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api import strict_json
from app.audit.records.entry import canonical
from app.errors import BadRequest
from app.quota.quota import Quota, diff, merge, parse_quota

decimals = st.decimals("0.000001", "1000", places=6)
models = st.sampled_from(["llama-3-8b", "gpt-4o", "模型", "a/b~c"])
quotas = st.builds(
    Quota,
    qps=st.none() | st.decimals("0.000001", "1000000", places=6),
    tpm=st.integers(1, 10**9),
    concurrency=st.none() | st.integers(1, 10**6),
    rate_factors=st.dictionaries(models, decimals, max_size=4),
    costs=st.dictionaries(models, decimals, max_size=4),
    sla_class=st.sampled_from(["standard", "payment"]),
    region=st.sampled_from(["", "eu-1"]),
    zone=st.sampled_from(["UTC", "Asia/Shanghai"]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.sampled_from("abc"), children, max_size=3),
    max_leaves=8,
)


def without_nulls(value: object) -> object:
    return {key: without_nulls(item) for key, item in value.items() if item is not None} if isinstance(value, dict) else value


def test_facts_are_what_is_set():
    """Rules see plain numbers and no nulls; what is not set is absent."""
    quota = parse_quota({"qps": 0.5, "tpm": 30000, "costs": {"m": 5}})

    assert quota.facts() == {"qps": 0.5, "tpm": 30000, "costs": {"m": 5}, "sla_class": "standard", "zone": "UTC"}


def test_record_is_exact_and_has_ascii_keys():
    """The record keeps decimals as text and model ids as values, whatever their script."""
    quota = parse_quota({"qps": 50, "rate_factors": {"模型": 0.8, "a": 2.4}, "region": "eu-1", "zone": "Asia/Shanghai"})

    assert quota.record() == {
        "qps": "50",
        "rate_factors": [{"model": "a", "value": "2.4"}, {"model": "模型", "value": "0.8"}],
        "sla_class": "standard",
        "region": "eu-1",
        "zone": "Asia/Shanghai",
    }


@given(quotas)
def test_snapshot_round_trip_is_exact(quota: Quota):
    """A quota read back from the canonical bytes of its record is the same quota, digit for digit."""
    record = orjson.loads(canonical(quota.record()))

    maps = {name: {item["model"]: Decimal(item["value"]) for item in record.get(name, ())} for name in ("rate_factors", "costs")}
    qps = {"qps": Decimal(record["qps"])} if "qps" in record else {}
    assert quota == Quota(**record | maps | qps)


@given(quotas)
def test_answer_round_trip_is_exact(quota: Quota):
    """What GET answers, sent back as PUT, is the same quota, although JSON numbers pass through doubles."""
    assert quota == parse_quota(strict_json.loads(orjson.dumps(quota.facts())))


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"qps": 0}, "qps"),
        ({"qps": -1}, "qps"),
        ({"qps": 1_000_001}, "qps"),
        ({"qps": "5"}, "qps"),
        ({"qps": True}, "qps"),
        ({"qps": float("nan")}, "qps"),
        ({"qps": float("inf")}, "qps"),
        ({"qps": 0.1234567}, "qps"),
        ({"tpm": "30000"}, "tpm"),
        ({"tpm": 1.5}, "tpm"),
        ({"tpm": 30000.0}, "tpm"),
        ({"tpm": True}, "tpm"),
        ({"tpm": 0}, "tpm"),
        ({"tpm": 10**9 + 1}, "tpm"),
        ({"tpm": 18446744073709551617}, "tpm"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": [1]}, "concurrency"),
        ({"tpm": 1, "rate_factors": {"m": "0.8"}}, "rate_factors.m"),
        ({"tpm": 1, "rate_factors": {"m": 0}}, "rate_factors.m"),
        ({"tpm": 1, "costs": {"m": 1001}}, "costs.m"),
        ({"tpm": 1, "costs": {"": 1}}, "costs"),
        ({"tpm": 1, "costs": {"a\u200b": 1}}, "costs"),
        ({"tpm": 1, "costs": {"caf\u00e9": 1, "cafe\u0301": 2}}, "costs"),
        ({"tpm": 1, "costs": {f"m{n}": 1 for n in range(257)}}, "costs"),
        ({"tpm": 1, "sla_class": ""}, "sla_class"),
        ({"tpm": 1, "sla_class": "a b"}, "sla_class"),
        ({"tpm": 1, "region": 7}, "region"),
        ({"tpm": 1, "zone": "Mars/Olympus"}, "zone"),
        ({"tpm": 1, "zone": "../../etc/passwd"}, "zone"),
        ({"tpm": 1, "zone": ""}, "zone"),
        ({"tpm": 1, "burst": 2}, "burst"),
    ],
)
def test_bad_fields_are_refused_by_name(document: dict, field: str):
    """Text for numbers, booleans, NaN, out of range, unknown zones and unknown fields are a 400 that names the field."""
    with pytest.raises(BadRequest) as refused:
        parse_quota(document)

    assert field == refused.value.field


def test_a_quota_limits_something():
    """A quota without any dimension is refused: it would look like a limit and be none."""
    with pytest.raises(BadRequest, match="at least one of qps, tpm, concurrency"):
        parse_quota({"region": "eu-1"})


@pytest.mark.parametrize("document", [None, [], "tpm", 5])
def test_a_quota_is_an_object(document: object):
    """Another JSON type is a 400."""
    with pytest.raises(BadRequest, match="JSON object"):
        parse_quota(document)


def test_misspelling_gets_a_hint():
    """An unknown field close to a known one names the known one."""
    with pytest.raises(BadRequest) as refused:
        parse_quota({"tpm": 1, "concurency": 3})

    assert refused.value.advice == "Did you mean `concurrency`?"


def test_big_numbers_keep_their_digits():
    """The largest numbers that are accepted come out digit for digit."""
    quota = parse_quota(strict_json.loads(b'{"qps": 999999.999999, "tpm": 1000000000}'))

    assert Decimal("999999.999999") == quota.qps
    assert canonical(quota.record()) == b'{"qps":"999999.999999","sla_class":"standard","tpm":1000000000,"zone":"UTC"}'


@given(json_values, json_values)
def test_merge_patch_follows_the_standard(target: object, patch: object):
    """A patch that is no object replaces; one that is merges member by member, and null removes (RFC 7396)."""
    merged = merge(target, patch)
    if not isinstance(patch, dict):
        assert patch == merged
        return
    old = target if isinstance(target, dict) else {}

    assert {key for key in old if key not in patch} | {key for key, value in patch.items() if value is not None} == set(merged)
    assert all(merged[key] == old[key] for key in old if key not in patch)
    assert all(merged[key] == merge(old.get(key), value) for key, value in patch.items() if value is not None)


@given(json_values, json_values)
def test_merge_patch_twice_is_once(target: object, patch: object):
    """Applying the same patch again changes nothing."""
    assert merge(target, patch) == merge(merge(target, patch), patch)


@given(json_values)
def test_empty_patch_changes_no_object(target: object):
    """An empty patch leaves an object as it is."""
    if isinstance(target, dict):
        assert target == merge(target, {})


@given(quotas, quotas)
def test_diff_tells_exactly_what_differs(before: Quota, after: Quota):
    """There is a difference exactly where quotas differ, and swapping sides swaps each difference."""
    forward = [(change.path, change.before, change.after) for change in diff(before, after)]

    assert bool(forward) == (before != after)
    assert forward == [(change.path, change.after, change.before) for change in diff(after, before)]


def test_diff_points_into_the_facts():
    """Paths are JSON pointers, with / and ~ in model ids escaped; the side that is missing is absent."""
    before = parse_quota({"qps": 5, "tpm": 100, "costs": {"a/b~c": 2}})
    after = parse_quota({"qps": 5.5, "costs": {"a/b~c": 3}})

    assert [change.record() for change in diff(before, after)] == [
        {"path": "/costs/a~1b~0c", "before": "2", "after": "3"},
        {"path": "/qps", "before": "5", "after": "5.5"},
        {"path": "/tpm", "before": 100},
    ]
