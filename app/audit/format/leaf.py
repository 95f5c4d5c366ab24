"""The bytes of a leaf and its two hashes: what stands in the log is made here, and nowhere else.

Writer, sequencer, export and verifier share these functions, so that none can hash what another did not store.
"""

import functools
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from hashlib import _Hash

HASH_BYTES = 32
GENESIS = bytes(HASH_BYTES)
"""What the chain's first link follows."""
_LEAF, _NODE, _CHAIN = b"\x00", b"\x01", b"\x02"
_FORM = re.compile(rb'\{"body":(\{.*\}),"retention":"d[1-9][0-9]{2,3}","seq":(0|[1-9][0-9]{0,18})\}', re.DOTALL)
_RECORDED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a leaf says."""

    seq: int
    identity: str
    kind: str
    recorded: str
    """RFC 3339 in UTC with microseconds, so that two compare as text."""
    body: dict[str, Any]


def leaf_bytes(seq: int, retention: str, body: bytes) -> bytes:
    """The leaf of the entry with number `seq` (from 0): canonical, since its three keys are sorted and `body` is canonical."""
    return b'{"body":%b,"retention":"%b","seq":%d}' % (body, retention.encode("ascii"), seq)


def parse_leaf(leaf: bytes) -> Leaf:
    """What the bytes of `leaf` say. Raises ValueError where they are not of the form that `leaf_bytes` makes of an entry."""
    form = _FORM.fullmatch(leaf)
    if form is None:
        raise ValueError("it is not made of body, retention and seq")
    body = orjson.loads(form[1])
    members = [body.get(name) for name in ("id", "kind", "recorded")]
    if not all(isinstance(member, str) for member in members):
        raise ValueError("id, kind or recorded is missing in its body, or is no text")
    identity, kind, recorded = members
    if not _RECORDED.fullmatch(recorded):
        raise ValueError("it was not recorded in UTC with microseconds")
    datetime.fromisoformat(recorded)
    return Leaf(int(form[2]), identity, kind, recorded, body)


def leaf_hash(leaf: bytes) -> bytes:
    """SM3(00 || leaf), 32 bytes (RFC 6962 section 2.1, over SM3)."""
    return _after(_LEAF, leaf)


def node_hash(left: bytes, right: bytes) -> bytes:
    """SM3(01 || left || right), 32 bytes (RFC 6962 section 2.1, over SM3)."""
    return _after(_NODE, left + right)


def chain_hash(previous: bytes, leaf: bytes) -> bytes:
    """SM3(02 || previous || leaf hash), 32 bytes: the linear chain beside the tree."""
    return _after(_CHAIN, previous + leaf)


def sm3(data: bytes) -> bytes:
    """SM3 (GB/T 32905), 32 bytes."""
    return _after(b"", data)


def shelf(retention: str, recorded: datetime) -> str:
    """Where a body is kept, such as `d365-2026-11`: its retention class and the UTC month in which it was recorded."""
    return f"{retention}-{recorded.astimezone(UTC):%Y-%m}"


def _after(prefix: bytes, data: bytes) -> bytes:
    hashing = _begun(prefix).copy()
    hashing.update(data)
    return hashing.digest()


@functools.cache
def _begun(prefix: bytes) -> "_Hash":
    """SM3 that has read one of the prefixes: to copy it takes half the time of a new one, and small hashes are most of our work."""
    return hashlib.new("sm3", prefix)
