"""Sealed members of entries in clear, for a reader who asks for it.

When down: DependencyDown; a reader who asked for the clear text gets nothing rather than half of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from app.audit.people.subject_keys import Keyring, SubjectKeys
from app.audit.reading.entries import Logged


@dataclass(frozen=True, slots=True)
class Unsealed:
    """What an entry has sealed: each member is in exactly one of the three."""

    texts: dict[str, str] = field(default_factory=dict, repr=False)
    erased: tuple[str, ...] = ()
    """Their key was destroyed."""
    unreadable: tuple[str, ...] = ()
    """Not what was sealed for this entry."""


async def unseal(keys: SubjectKeys, entries: Sequence[Logged]) -> list[Unsealed]:
    """The sealed members of each entry. Raises DependencyDown, and ConfigError where the master key is another's."""
    sealed = [_sealed(logged.body) for logged in entries]
    keyring = await keys.keyring(text for _, members in sealed for text in members.values())
    return [_unsealed(keyring, entry_id, members) for entry_id, members in sealed]


def _unsealed(keyring: Keyring, entry_id: UUID | None, sealed: Mapping[str, str]) -> Unsealed:
    if entry_id is None:
        return Unsealed(unreadable=tuple(sealed))
    texts: dict[str, str] = {}
    erased, unreadable = [], []
    for member, value in sealed.items():
        try:
            text = keyring.open(entry_id, member, value)
        except ValueError:
            unreadable.append(member)
            continue
        if text is None:
            erased.append(member)
        else:
            texts[member] = text
    return Unsealed(texts, tuple(erased), tuple(unreadable))


def _sealed(body: bytes | None) -> tuple[UUID | None, dict[str, str]]:
    """The id of an entry and what it has sealed; a body that was altered may have neither."""
    try:
        envelope: Any = orjson.loads(body or b"{}")
        sealed = {str(member): str(value) for member, value in envelope.get("sealed", {}).items()}
    except (orjson.JSONDecodeError, AttributeError):
        return None, {}
    try:
        return UUID(envelope["id"]), sealed
    except (KeyError, ValueError, AttributeError, TypeError):
        return None, sealed
