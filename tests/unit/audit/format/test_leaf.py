"""The bytes and hashes of leaves."""

import subprocess
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

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


IDENTITY = UUID("0190A0B0-0000-7000-8000-000000000007")
RECORDED = datetime(2026, 11, 30, 23, 59, 59, 7, tzinfo=UTC)


def test_the_text_of_a_leaf_is_canonical():
    """A leaf is the canonical form of its five members, the hash of the body's own bytes among them, and reads as what it was."""
    one = leaf.Leaf.of(7, IDENTITY, RECORDED, "d365", b"abc")
    members = {
        "seq": 7,
        "retention": "d365",
        "recorded": "2026-11-30T23:59:59.000007Z",
        "id": "0190a0b0-0000-7000-8000-000000000007",
        "body": "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0",
    }

    assert canonical(members) == one.text
    assert leaf.parse_leaf(one.text) == one


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff", b'{"body":{},"retention":"d365","seq":7}'])
def test_what_is_no_leaf_is_refused(text: bytes):
    """Other bytes, of whatever form, say nothing."""
    with pytest.raises(ValueError, match=r"body, id, recorded, retention and seq|codec"):
        leaf.parse_leaf(text)


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
    assert leaf.Leaf.of(0, IDENTITY, recorded, "d365", b"").shelf == shelf
