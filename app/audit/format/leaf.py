"""The bytes of a leaf and its two hashes: what stands in the log is made here, and nowhere else.

Writer, sequencer, export and verifier share these functions, so that none can hash what another did not store.
"""

import functools
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from app.instants import rfc3339

if TYPE_CHECKING:
    from hashlib import _Hash

HASH_BYTES = 32
GENESIS = bytes(HASH_BYTES)
"""What the chain's first link follows."""
_LEAF, _NODE, _CHAIN = b"\x00", b"\x01", b"\x02"
_FORM = re.compile(
    r'\{"body":"([0-9a-f]{64})","id":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})","recorded":"([0-9]{4}-[0-9]{2}-[0-9]{2}'
    r'T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)","retention":"(d[1-9][0-9]{2,3})","seq":(0|[1-9][0-9]{0,18})\}'
)
MOST_SEQ = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Leaf:
    """What is hashed of an entry, and kept of it for ever: its body may go when its time is over, and until when that was stays proven."""

    seq: int
    """From 0."""
    identity: str
    """The UUID in lower case."""
    recorded: str
    """RFC 3339 in UTC with microseconds, so that two compare as text."""
    retention: str
    """Retention class: `d` and the days, such as d365."""
    body_hash: bytes

    @classmethod
    def of(cls, seq: int, identity: UUID, recorded: datetime, retention: str, body: bytes) -> "Leaf":
        """The leaf of the entry with number `seq` and this `body`."""
        return cls(seq, str(identity), rfc3339(recorded), retention, sm3(body))

    @property
    def text(self) -> bytes:
        """What is hashed: canonical, since its keys are sorted."""
        return (
            f'{{"body":"{self.body_hash.hex()}","id":"{self.identity}","recorded":"{self.recorded}",'
            f'"retention":"{self.retention}","seq":{self.seq}}}'
        ).encode()

    @property
    def shelf(self) -> str:
        """Where its body is kept, such as `d365-2026-11`: its retention class and the UTC month in which it was recorded."""
        return f"{self.retention}-{self.recorded[:7]}"


def parse_leaf(text: bytes) -> Leaf:
    """The leaf that was hashed as `text`. Raises ValueError where it is not spelled as one."""
    form = _FORM.fullmatch(text.decode("ascii"))
    if form is None:
        raise ValueError("it is not made of body, id, recorded, retention and seq")
    body, identity, recorded, retention, seq = form.groups()
    datetime.fromisoformat(recorded)
    if int(seq) > MOST_SEQ:
        raise ValueError(f"it has a number above {MOST_SEQ}")
    return Leaf(int(seq), identity, recorded, retention, bytes.fromhex(body))


def parse_body(body: bytes, leaf: Leaf) -> dict[str, Any]:
    """The members of the body with the hash that `leaf` has. Raises ValueError where it is no entry, or has another id or instant."""
    said = orjson.loads(body)
    members: dict[str, Any] = said if isinstance(said, dict) else {}
    if (members.get("id"), members.get("recorded")) != (leaf.identity, leaf.recorded):
        raise ValueError("its body does not have the id and the instant of its leaf")
    if type(members.get("kind")) is not str:
        raise ValueError("its body has no kind")
    return members


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


def _after(prefix: bytes, data: bytes) -> bytes:
    hashing = _begun(prefix).copy()
    hashing.update(data)
    return hashing.digest()


@functools.cache
def _begun(prefix: bytes) -> "_Hash":
    """SM3 that has read one of the prefixes: to copy it takes half the time of a new one, and small hashes are most of our work."""
    return hashlib.new("sm3", prefix)
