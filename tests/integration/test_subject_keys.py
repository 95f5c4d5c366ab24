"""Keys of people on a real PostgreSQL."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from app.audit.people.subject_keys import SubjectKeys
from app.audit.records.entry import Sealed
from app.clock import SystemClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.errors import ConfigError, DependencyDown
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import TIMEOUT_MS

ALICE, BOB = "p1:aaaa", "p1:bbbb"
TEXTS = {"subject": "alice@example.org", "address": "192.0.2.7"}

Make = Callable[..., SubjectKeys]


@pytest.fixture
def make(registry_engine: AsyncEngine, tmp_path: Path) -> Make:
    """A replica's keys: all share the database, and the secrets but where another folder is named."""

    def replica(folder: str = "secrets", **bounds: int) -> SubjectKeys:
        return SubjectKeys(registry_engine, tmp_path / folder, SystemClock(), Metrics(), timeout_ms=TIMEOUT_MS, **bounds)

    return replica


async def sealed(keys: SubjectKeys, owner: str = ALICE, texts: dict[str, str | None] = TEXTS) -> Sealed:
    return (await keys.key(owner)).seal(texts)


async def opened(keys: SubjectKeys, one: Sealed) -> dict[str, str | None]:
    """Texts of an entry in clear."""
    keyring = await keys.keyring(one.texts.values())
    return {member: keyring.open(one.entry_id, member, text) for member, text in one.texts.items()}


async def as_owner(urls: DatabaseUrls, statement: str, *values: Any) -> None:
    async with await psycopg.AsyncConnection.connect(conninfo(urls.owner)) as connection:
        await connection.execute(statement, values)


async def test_what_is_sealed_opens_in_another_process(make: Make):
    """Whoever has the database and the file reads the texts again; what stands in the entry shows nothing of them."""
    one = await sealed(make())

    assert await opened(make(), one) == TEXTS
    assert all(text.startswith("s1:") and "alice" not in text and "192" not in text for text in one.texts.values())


async def test_what_is_not_there_is_not_sealed(make: Make):
    """Texts that are absent or empty leave no member."""
    one = await sealed(make(), texts={"purpose": None, "reason": "", "address": "192.0.2.7"})

    assert set(one.texts) == {"address"}


async def test_equal_texts_do_not_look_alike(make: Make):
    """The same text about the same person is another ciphertext each time."""
    keys = make()
    first, second = await sealed(keys), await sealed(keys)

    assert first.entry_id != second.entry_id
    assert not set(first.texts.values()) & set(second.texts.values())


async def test_a_text_opens_in_its_place_alone(make: Make):
    """Moved to another entry or member, changed, or of another form, a text is refused by name."""
    keys = make()
    one, other = await sealed(keys), await sealed(keys)
    text = one.texts["subject"]
    key_id = text.split(":")[1]

    for entry_id, member, wrong in [
        (other.entry_id, "subject", text),
        (one.entry_id, "address", text),
        (one.entry_id, "subject", text[:-6] + ("AAAA==" if text[-6:] != "AAAA==" else "BBBB==")),
        (one.entry_id, "subject", f"s2:{text[3:]}"),
        (one.entry_id, "subject", f"s1:{key_id}:"),
        (one.entry_id, "subject", f"s1:{key_id}:?"),
        (one.entry_id, "subject", "alice@example.org"),
    ]:
        with pytest.raises(ValueError, match=f"{member} of entry {entry_id} does not open"):
            await opened(keys, Sealed(entry_id, {member: wrong}))


async def test_texts_of_many_people_take_one_question(make: Make, registry_engine: AsyncEngine):
    """However many entries and people there are, their keys are read by one statement."""
    keys = make()
    many = [await sealed(keys, f"p1:{number}", {"reason": f"for {number}"}) for number in range(20)]
    statements: list[str] = []
    event.listen(registry_engine.sync_engine, "after_cursor_execute", lambda *of: statements.append(of[2]))
    keyring = await keys.keyring(one.texts["reason"] for one in many)

    assert [keyring.open(one.entry_id, "reason", one.texts["reason"]) for one in many] == [f"for {number}" for number in range(20)]
    assert sum("subject_key" in statement for statement in statements) == 1


async def test_replicas_that_meet_somebody_at_once_agree_on_one_key(make: Make):
    """However many meet a person at the same moment, there is one key, and each opens what another sealed."""
    replicas = [make() for _ in range(8)]
    made = await asyncio.gather(*(sealed(replica) for replica in replicas))

    assert len({text.split(":")[1] for one in made for text in one.texts.values()}) == 1
    assert all([await opened(replicas[0], one) == TEXTS for one in made])


async def test_a_destroyed_key_opens_as_erased(make: Make, database_urls: DatabaseUrls):
    """Once a key is gone its texts are gone, in every process and under the same ids; other people's stay."""
    keys = make()
    alice, bob = await sealed(keys), await sealed(keys, BOB, {"reason": "for bob"})
    await as_owner(database_urls, "DELETE FROM registry.subject_key WHERE subject = %s", ALICE)

    assert await opened(keys, alice) == {"subject": None, "address": None}
    assert await opened(make(), alice) == {"subject": None, "address": None}
    assert await opened(keys, bob) == {"reason": "for bob"}


async def test_the_database_alone_opens_nothing(make: Make):
    """With another master file the keys in the database do not open, and the error names the file and the remedy."""
    one = await sealed(make())

    with pytest.raises(ConfigError, match=r"elsewhere/subject-keys\.key: does not open the key"):
        await opened(make("elsewhere"), one)
    with pytest.raises(ConfigError, match=r"elsewhere/subject-keys\.key"):
        await make("elsewhere").key(ALICE)


async def test_another_master_file_is_found_at_the_start(make: Make):
    """A file that does not belong to the database is told before anybody is met; one that does, and any where nobody was met, pass."""
    await make("elsewhere").check()
    await sealed(make())
    await make().check()

    with pytest.raises(ConfigError, match=r"elsewhere/subject-keys\.key: does not open the key .* of the registry") as refused:
        await make("elsewhere").check()
    assert "all replicas need the same one" in refused.value.advice


async def test_a_key_belongs_to_one_person(make: Make, database_urls: DatabaseUrls):
    """A wrapped key that is put under another name does not open there."""
    await sealed(make())
    await as_owner(database_urls, "UPDATE registry.subject_key SET subject = %s", BOB)

    with pytest.raises(ConfigError, match="does not open the key"):
        await make().key(BOB)


async def test_the_least_used_key_goes_first(make: Make, database_urls: DatabaseUrls):
    """Memory holds as many keys as it may: of two, the one that was not asked for again is read anew."""
    keys = make(most_kept=2)
    alice, bob = await keys.key(ALICE), await keys.key(BOB)
    await keys.key(ALICE)
    await keys.key("p1:cccc")
    await as_owner(database_urls, "DELETE FROM registry.subject_key")

    assert (await keys.key(ALICE)).id == alice.id
    assert (await keys.key(BOB)).id != bob.id


async def test_the_master_key_is_private(make: Make, tmp_path: Path):
    """Only the owner reads the master key, and keys never show in what is printed of them."""
    key = await make().key(ALICE)

    assert (tmp_path / "secrets" / "subject-keys.key").stat().st_mode & 0o777 == 0o600
    assert repr(key) == f"SubjectKey(id={key.id!r})"


async def test_without_the_database_only_known_people_are_sealed(make: Make, registry_engine: AsyncEngine, tmp_path: Path):
    """In an outage a key in memory goes on sealing; for anybody else the caller is told within the time-out."""
    nowhere = create_engine("postgresql+psycopg://x:x@127.0.0.1:1/x", DatabaseSettings())
    keys = make()
    await keys.key(ALICE)
    keys._transactions._engine = nowhere

    assert (await sealed(keys)).texts
    with pytest.raises(DependencyDown):
        await keys.key(BOB)
    await nowhere.dispose()
