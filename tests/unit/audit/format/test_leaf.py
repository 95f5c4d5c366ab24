"""The bytes and hashes of leaves."""

import subprocess
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format import leaf
from app.audit.records.entry import canonical

LEFT, RIGHT = bytes(range(32)), bytes(range(32, 64))


def _openssl(data: bytes) -> bytes:
    return subprocess.run(["openssl", "dgst", "-sm3", "-binary"], input=data, capture_output=True, check=True).stdout


def test_sm3_is_the_standards():
    """SM3 gives the digests of the examples in GB/T 32905."""
    assert leaf.sm3(b"abc").hex() == "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"
    assert leaf.sm3(b"abcd" * 16).hex() == "debe9ff92275b8a138604889c18e5a4d6fdb70e5387e5765293dcba39c0c5732"


def test_leaf_bytes_are_canonical():
    """A leaf is the canonical form of its three members, with the body's own bytes inside."""
    body = canonical({"v": 1, "reason": "预算 é"})

    assert leaf.leaf_bytes(7, "d365", body) == '{"body":{"reason":"预算 é","v":1},"retention":"d365","seq":7}'.encode()
    assert leaf.leaf_bytes(7, "d365", body) == canonical({"seq": 7, "retention": "d365", "body": {"v": 1, "reason": "预算 é"}})


def test_hashes_are_what_openssl_says():
    """Leaf, node and link of the chain are SM3 over one byte that tells them apart, and then their parts."""
    assert leaf.leaf_hash(b"{}") == _openssl(b"\x00{}")
    assert leaf.node_hash(LEFT, RIGHT) == _openssl(b"\x01" + LEFT + RIGHT)
    assert leaf.chain_hash(LEFT, RIGHT) == _openssl(b"\x02" + LEFT + RIGHT)


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_hashes_remember_nothing(inputs: list[bytes]):
    """What was hashed before does not change what is hashed now."""
    once = [(leaf.leaf_hash(one), leaf.chain_hash(LEFT, one), leaf.node_hash(one, RIGHT)) for one in inputs]

    assert once[::-1] == [(leaf.leaf_hash(one), leaf.chain_hash(LEFT, one), leaf.node_hash(one, RIGHT)) for one in reversed(inputs)]
    assert once == [(leaf.sm3(b"\0" + one), leaf.sm3(b"\2" + LEFT + one), leaf.sm3(b"\1" + one + RIGHT)) for one in inputs]


@pytest.mark.parametrize(
    ("recorded", "shelf"),
    [
        (datetime(2026, 11, 30, 23, 59, 59, 999999, tzinfo=UTC), "d365-2026-11"),
        (datetime(2026, 12, 1, tzinfo=UTC), "d365-2026-12"),
        (datetime(2026, 12, 1, 7, 59, tzinfo=timezone(timedelta(hours=8))), "d365-2026-11"),
    ],
)
def test_a_shelf_is_a_month_of_utc(recorded: datetime, shelf: str):
    """A body's shelf is its class and the month in UTC, whatever zone the instant is written in."""
    assert leaf.shelf("d365", recorded) == shelf
