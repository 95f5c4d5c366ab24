"""Keys of people: what must stay readable about somebody is encrypted under a key of their own, and to destroy it is to erase them.

A key is 32 random bytes, made when somebody is first met and kept in the registry, wrapped by AES-256-GCM under the master key
in a file: neither a copy of the database nor the file opens anything alone. A sealed text is `s1:KEY:BASE64`, the id of the key
and nonce and ciphertext of AES-256-GCM, whose additional data are the entry's id and the member: it opens nowhere else.

A key is destroyed by deleting its row. Processes that know it go on sealing under it, and nobody opens what they seal.

When down: DependencyDown for somebody whose key is not in memory; whoever owes the entry refuses what it would have recorded.
"""

import base64
import secrets
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from uuid_utils.compat import uuid7

from app.audit.people.master_key import master_key
from app.audit.records.entry import Sealed
from app.clock import Clock
from app.errors import ConfigError
from app.observability.metrics import Metrics
from app.transaction import Transactions

MASTER_FILE = "subject-keys.key"
FORM = "s1"
"""Names the cipher and what is bound to it, so that a later form can stand beside it."""
KEY_BYTES = 32
NONCE_BYTES = 12  # what GCM is made for; random ones are safe far beyond the entries about one person
MOST_KEPT = 10_000
"""Keys in memory, the least used go: some 600 bytes each. Whoever comes back costs one read."""

_OF_OWNER = text("SELECT id, wrapped FROM registry.subject_key WHERE subject = :owner")
# Of several that meet somebody at once, the first to insert wins, and the others read its key.
_INSERT = text("""
    INSERT INTO registry.subject_key (id, subject, wrapped, created) VALUES (:id, :owner, :wrapped, :created)
    ON CONFLICT (subject) DO NOTHING
""")
_OLDEST = text("SELECT id, subject, wrapped FROM registry.subject_key ORDER BY id LIMIT 1")
_BY_ID = text("SELECT id, subject, wrapped FROM registry.subject_key WHERE id = ANY(:ids)")
_KEPT_OF = text("SELECT id, wrapped, created FROM registry.subject_key WHERE subject = :owner")
_OF_OTHERS = text("SELECT id FROM registry.subject_key WHERE id = ANY(:ids) AND subject <> :owner")


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """The key of one person."""

    id: UUID
    secret: bytes = field(repr=False)
    """32 bytes. A cipher that is kept takes 3 KB; one is made in a microsecond."""

    def seal(self, texts: Mapping[str, str | None], entry_id: UUID | None = None) -> Sealed:
        """Those texts that are there and not empty, by the member each would stand in: for a new entry, or bound to the id given."""
        entry_id, cipher = entry_id or uuid7(), AESGCM(self.secret)
        return Sealed(entry_id, {member: self._seal(cipher, entry_id, member, plain) for member, plain in texts.items() if plain})

    def open(self, entry_id: UUID, member: str, sealed: bytes) -> str:
        """The text behind nonce and ciphertext. Raises ValueError where it was sealed for another place or under another key."""
        try:
            return AESGCM(self.secret).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound(entry_id, member)).decode()
        except (InvalidTag, ValueError):
            raise _unreadable(entry_id, member) from None

    def _seal(self, cipher: AESGCM, entry_id: UUID, member: str, plain: str) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + cipher.encrypt(nonce, plain.encode(), _bound(entry_id, member))
        return f"{FORM}:{self.id}:{base64.b64encode(sealed).decode()}"


class Keyring:
    """Keys that open texts; those of texts that it was not made for are as good as destroyed."""

    def __init__(self, keys: Mapping[UUID, SubjectKey], damaged: Collection[UUID] = ()) -> None:
        """`damaged`: ids of keys that are there and do not open."""
        self._keys = keys
        self._damaged = damaged

    def open(self, entry_id: UUID, member: str, sealed: str) -> str | None:
        """The text of a member of an entry; None where its key is destroyed.

        Raises ValueError for what was changed, moved from another place or never sealed, and where its key is damaged.
        """
        if (parts := _parse(sealed)) is None or parts[0] in self._damaged:
            raise _unreadable(entry_id, member)
        key_id, ciphertext = parts
        key = self._keys.get(key_id)
        return None if key is None else key.open(entry_id, member, ciphertext)


@dataclass(frozen=True, slots=True)
class KeptKey:
    """What the registry keeps of somebody's key."""

    created: datetime
    key: SubjectKey | None
    """None where it does not open: it was damaged."""

    @property
    def keyring(self) -> Keyring:
        """What opens this person's texts, and nobody else's."""
        return Keyring({self.key.id: self.key} if self.key else {})


class SubjectKeys:
    """Seals texts about people for entries, and opens them. Owners are pseudonyms (app/audit/people/pseudonyms.py)."""

    def __init__(
        self, engine: AsyncEngine, secrets_dir: Path, clock: Clock, metrics: Metrics, *, timeout_ms: int, most_kept: int = MOST_KEPT
    ) -> None:
        """`engine`: of the registry's role. The first start makes the master key (0600). Raises ConfigError."""
        self._path = secrets_dir / MASTER_FILE
        self._master = AESGCM(master_key(self._path))
        self._clock = clock
        self._transactions = Transactions(engine, metrics, call="subject_keys", timeout_ms=timeout_ms)
        self._most_kept = most_kept
        self._kept: OrderedDict[str, SubjectKey] = OrderedDict()

    async def key(self, owner: str) -> SubjectKey:
        """The key of `owner`, from memory, from the registry, or made now. Raises DependencyDown, ConfigError.

        It may need a connection of the registry's pool: ask before a transaction, never inside one.
        """
        key = self._kept.get(owner)
        if key is None:
            key = self._kept[owner] = await self._transactions.run(lambda connection: self._find_or_make(connection, owner))
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(owner)
        return key

    async def check(self) -> None:
        """Raises ConfigError where the master file is not the one of this database, DependencyDown where nobody can tell."""

        async def look(connection: AsyncConnection) -> None:
            row = (await connection.execute(_OLDEST)).one_or_none()
            if row is not None:
                self._unwrap(row, row.subject)

        await self._transactions.run(look)

    async def keyring(self, sealed: Iterable[str]) -> Keyring:
        """What opens these texts, of however many entries and people, by one question. Raises DependencyDown, ConfigError."""
        return Keyring(await self._by_id({parts[0] for text in sealed if (parts := _parse(text))}, damaged=None))

    async def whole_ones(self, sealed: Iterable[str]) -> Keyring:
        """The same where a damaged key must not keep the others from being used. Raises DependencyDown.

        Call `check` first: with another master file every key looks damaged.
        """
        damaged: set[UUID] = set()
        return Keyring(await self._by_id({parts[0] for text in sealed if (parts := _parse(text))}, damaged=damaged), damaged)

    async def kept(self, owner: str) -> KeptKey | None:
        """The key of `owner` as the registry has it now; None where there is none, and none is made. Raises DependencyDown.

        Call `check` first: with another master file every key looks damaged.
        """

        async def look(connection: AsyncConnection) -> KeptKey | None:
            row = (await connection.execute(_KEPT_OF, {"owner": owner})).one_or_none()
            if row is None:
                return None
            try:
                return KeptKey(row.created, self._unwrap(row, owner))
            except ConfigError:
                return KeptKey(row.created, None)

        return await self._transactions.run(look)

    async def of_others(self, owner: str, sealed: Iterable[str]) -> frozenset[str]:
        """Which of these texts are sealed under the key of somebody else than `owner`. Raises DependencyDown."""
        by_key: dict[UUID, list[str]] = {}
        for one in sealed:
            if parts := _parse(one):
                by_key.setdefault(parts[0], []).append(one)

        async def look(connection: AsyncConnection) -> frozenset[str]:
            rows = await connection.execute(_OF_OTHERS, {"ids": list(by_key), "owner": owner})
            return frozenset(one for row in rows for one in by_key[row.id])

        return await self._transactions.run(look) if by_key else frozenset()

    async def _find_or_make(self, connection: AsyncConnection, owner: str) -> SubjectKey:
        row = (await connection.execute(_OF_OWNER, {"owner": owner})).one_or_none()
        if row is None:
            key_id = uuid7()
            wrapped = self._wrap(key_id, owner, secrets.token_bytes(KEY_BYTES))
            made = {"id": key_id, "owner": owner, "wrapped": wrapped, "created": self._clock.utcnow()}
            await connection.execute(_INSERT, made)
            row = (await connection.execute(_OF_OWNER, {"owner": owner})).one()
        return self._unwrap(row, owner)

    async def _by_id(self, ids: set[UUID], *, damaged: set[UUID] | None) -> dict[UUID, SubjectKey]:
        """Those that are there; the ids of those that do not open go into `damaged`. Raises ConfigError where that is None."""

        async def read(connection: AsyncConnection) -> dict[UUID, SubjectKey]:
            keys = {}
            for row in await connection.execute(_BY_ID, {"ids": list(ids)}):
                try:
                    keys[row.id] = self._unwrap(row, row.subject)
                except ConfigError:
                    if damaged is None:
                        raise
                    damaged.add(row.id)
            return keys

        return await self._transactions.run(read) if ids else {}

    def _wrap(self, key_id: UUID, owner: str, key: bytes) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._master.encrypt(nonce, key, _bound(key_id, owner))

    def _unwrap(self, row: Row[tuple[UUID, bytes]], owner: str) -> SubjectKey:
        wrapped = bytes(row.wrapped)
        try:
            return SubjectKey(row.id, self._master.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], _bound(row.id, owner)))
        except (InvalidTag, ValueError):
            raise ConfigError(
                f"{self._path}: does not open the key {row.id} of the registry",
                hint="Restore the file that belongs to this database; all replicas need the same one.",
            ) from None


def _bound(identity: UUID, name: str) -> bytes:
    """What a ciphertext is bound to: an id, which is always 36 characters, and a name."""
    return f"{identity}{name}".encode()


def _parse(sealed: str) -> tuple[UUID, bytes] | None:
    """The id of the key, and nonce and ciphertext; None for what has not the form."""
    form, _, rest = sealed.partition(":")
    key_id, _, encoded = rest.partition(":")
    try:
        return (UUID(key_id), base64.b64decode(encoded, validate=True)) if form == FORM else None
    except ValueError:
        return None


def _unreadable(entry_id: UUID, member: str) -> ValueError:
    return ValueError(f"{member} of entry {entry_id} does not open: it was changed, moved, or never sealed")
