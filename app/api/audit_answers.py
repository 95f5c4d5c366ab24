"""What the routes under /audit answer. Hashes are hexadecimal, bytes of entries base64."""

import base64
from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import BaseModel, Field

from app.audit.reading.entries import BodyState, Logged
from app.audit.reading.log import Certified, EntriesRead, EntryRead
from app.audit.reading.proofs import Extension, Inclusion
from app.instants import rfc3339
from app.signing.certificates import Certificate, CertificateRefused


class EntryAnswer(BaseModel):
    """An entry of the log. What is hashed is its leaf, which has the hash of the body; the proof of the entry has both."""

    seq: int
    leaf_hash: str
    shelf: str = Field(description="retention class and UTC month")
    state: BodyState = Field(
        description="kept; purged (its time was over, the leaf hash stays); altered (not what was hashed when it came)"
    )
    body: Any = Field(None, description="the canonical envelope; absent where it was purged or cannot be read")

    opened: dict[str, str] | None = Field(None, description="with open=true: sealed members in clear")
    erased: list[str] | None = Field(None, description="with open=true: sealed members whose key was destroyed")
    unreadable: list[str] | None = Field(None, description="with open=true: sealed members that were changed")


class EntriesAnswer(BaseModel):
    """One page of entries."""

    entries: list[EntryAnswer]
    next: int | None = Field(description="the `cursor` of the next page; null where nothing follows")


class CheckpointAnswer(BaseModel):
    """A signed checkpoint, and the certificates of all who ever signed."""

    log: str
    size: int
    root: str
    signed: str
    note: str
    certificates: list[str] = Field(description="PEM: the root and every signer; compare the root with the one you were given")


class ProofAnswer(BaseModel):
    """That an entry is under a signed checkpoint (RFC 9162 section 2.1.3, over SM3)."""

    index: int
    size: int
    leaf_hash: str
    entry: str | None = Field(None, description="the body's bytes in base64; absent where it was purged")
    leaf: str = Field(description="the leaf's bytes in base64: hash of the body, id, time, retention and number; they are what is hashed")
    path: list[str] = Field(description="leaf side first")
    note: str
    certificate: str = Field(description="PEM, of the note's signer")


class ConsistencyAnswer(BaseModel):
    """That the log of one checkpoint begins the log of another (RFC 9162 section 2.1.4, over SM3)."""

    old_size: int
    new_size: int
    path: list[str]
    old_note: str
    new_note: str


def entry_answer(read: EntryRead) -> EntryAnswer:
    """One entry as it is told."""
    logged, sealed = read.logged, read.unsealed
    members: dict[str, Any] = {} if (body := _body(logged)) is None else {"body": body}
    if sealed is not None:
        members["opened"] = sealed.texts
        members |= {name: list(some) for name, some in (("erased", sealed.erased), ("unreadable", sealed.unreadable)) if some}
    return EntryAnswer(seq=logged.seq, leaf_hash=logged.leaf_hash.hex(), shelf=logged.shelf, state=logged.state, **members)


def entries_answer(read: EntriesRead) -> EntriesAnswer:
    """One page as it is told."""
    return EntriesAnswer(entries=[entry_answer(entry) for entry in read.entries], next=read.next)


def checkpoint_answer(certified: Certified) -> CheckpointAnswer:
    """A checkpoint as it is told."""
    signed = certified.checkpoint
    said = signed.tree_head
    return CheckpointAnswer(
        log=said.origin,
        size=said.size,
        root=said.root.hex(),
        signed=rfc3339(signed.signed_at),
        note=signed.note,
        certificates=[pem for der in certified.certificates if (pem := _pem(der))],
    )


def proof_answer(proof: Inclusion) -> ProofAnswer:
    """A proof of inclusion as it is told."""
    body = proof.entry.body
    return ProofAnswer(
        index=proof.entry.seq,
        size=proof.checkpoint.size,
        leaf_hash=proof.entry.leaf_hash.hex(),
        entry=None if body is None else base64.b64encode(body).decode("ascii"),
        leaf=base64.b64encode(proof.entry.leaf.text).decode("ascii"),
        path=_hexes(proof.path),
        note=proof.checkpoint.note,
        certificate=proof.certificate.pem,
    )


def consistency_answer(proof: Extension) -> ConsistencyAnswer:
    """A proof of consistency as it is told."""
    old, new = proof.old, proof.new
    return ConsistencyAnswer(old_size=old.size, new_size=new.size, path=_hexes(proof.path), old_note=old.note, new_note=new.note)


def _body(logged: Logged) -> Any:
    try:
        return None if logged.body is None else orjson.loads(logged.body)
    except orjson.JSONDecodeError:
        return None  # then it is altered, too, and the export has its bytes


def _pem(der: bytes) -> str | None:
    try:
        return Certificate.load(der).pem
    except CertificateRefused:
        return None


def _hexes(hashes: Sequence[bytes]) -> list[str]:
    return [one.hex() for one in hashes]
