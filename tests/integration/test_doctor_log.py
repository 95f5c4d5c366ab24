"""What `sluice doctor` says of the log: who may change its tables, whether triggers still refuse it, whether its keys are in order."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pytest

from app.audit.sequencing.publisher import Publisher
from app.audit.sequencing.sequencer import Sequencer
from app.audit.sequencing.session import connected
from app.clock import SystemClock
from app.database import DatabaseUrls, conninfo
from app.errors import ConfigError
from app.signing.keys import KeyFolder
from app.signing.passphrase import known_passphrase
from tests.fixtures.append_only import SHELF_NOW, fill
from tests.fixtures.doctor import Findings, examine, external
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.signing import PASSPHRASE

pytestmark = pytest.mark.usefixtures("forbidden")


@pytest.fixture
def urls(database_urls: DatabaseUrls) -> dict[str, str]:
    """Settings of serve for this test's database."""
    given = database_urls
    return {"url": given.registry, "owner_url": given.owner, "intake_url": given.intake, "log_url": given.log}


def as_owner(urls: DatabaseUrls, *statements: str) -> None:
    with psycopg.connect(conninfo(urls.owner), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def told(finding: dict[str, str]) -> tuple[str, str]:
    return finding["level"], finding["message"]


def test_the_process_of_the_log_is_tried_where_it_is_configured(tmp_path: Path, urls: dict[str, str], sequencer_url: str):
    """With its URL in the settings the sequencer's role is tried and told; serve's settings leave it out, and nothing is missed."""
    assert told(external(tmp_path, **urls, sequencer_url=sequencer_url)["sequencer"]) == ("ok", "PostgreSQL 18 as sluice_sequencer")
    assert {"sequencer", "keys"}.isdisjoint(external(tmp_path, **urls))


def test_the_settings_of_the_log_alone_are_enough_for_the_log(tmp_path: Path, sequencer_url: str):
    """Where the process of the log runs by itself, no role of serve is missed: its own is tried, its keys and the triggers are looked at."""
    findings = external(tmp_path, url="postgresql://elsewhere/sluice", sequencer_url=sequencer_url)

    assert told(findings["sequencer"]) == ("ok", "PostgreSQL 18 as sluice_sequencer")
    assert findings["triggers"]["level"] == "ok"
    assert {"database", "owner", "intake", "log"}.isdisjoint(findings)


@pytest.mark.parametrize("duty", ["url", "intake_url", "log_url", "sequencer_url"])
def test_a_role_that_could_change_the_log_is_refused(
    tmp_path: Path, urls: dict[str, str], sequencer_url: str, database_urls: DatabaseUrls, duty: str
):
    """The owner of the tables, who could switch their triggers off, is for migrations alone."""
    findings = external(tmp_path, **urls | {"sequencer_url": sequencer_url} | {duty: database_urls.owner})
    name = {"url": "database"}.get(duty, duty.removesuffix("_url"))

    assert told(findings[name]) == ("fail", f"database.{duty}: sluice_owner, which may change the tables of the log")


def test_a_url_that_cannot_be_read_is_named(tmp_path: Path, urls: dict[str, str]):
    """A sequencer URL in a file that is not there is a finding, as any other."""
    findings = external(tmp_path, **urls, sequencer_url="file:/nowhere")

    assert told(findings["sequencer"]) == ("fail", "database.sequencer_url: /nowhere: No such file or directory")


def test_triggers_that_somebody_switched_off_are_named(
    tmp_path: Path, urls: dict[str, str], database_urls: DatabaseUrls, sequencer_url: str
):
    """A trigger that is dropped, disabled or no longer ALWAYS is named with its table, on the parent, a shelf, the head and the history."""
    asyncio.run(fill(sequencer_url))
    before = external(tmp_path, **urls)["triggers"]
    as_owner(
        database_urls,
        "ALTER TABLE audit.leaf DISABLE TRIGGER no_change",
        "ALTER TABLE audit.head ENABLE TRIGGER move_forward",
        "ALTER TABLE audit.checkpoint ENABLE REPLICA TRIGGER no_truncate",
        f"DROP TRIGGER no_truncate ON {SHELF_NOW}",
        "DROP TRIGGER no_change ON registry.quota_history",
    )
    code, findings = examine("--var", str(tmp_path))

    assert told(before) == ("ok", "what stands in the log and in the history is refused any change")
    assert findings["triggers"]["level"] == "fail"
    assert findings["triggers"]["message"].removeprefix("not there, or not ALWAYS: ").split(", ") == [
        "no_truncate on audit.body_d400_2026_11",
        "no_truncate on audit.checkpoint",
        "move_forward on audit.head",
        "no_change on audit.leaf",
        "no_change on registry.quota_history",
    ]
    assert "ENABLE ALWAYS TRIGGER" in findings["triggers"]["remedy"]
    assert code == 6


def test_a_database_without_a_log_yet_is_no_finding(tmp_path: Path, urls: dict[str, str], database_urls: DatabaseUrls):
    """Before serve has made the tables there is nothing to guard."""
    as_owner(database_urls, "DROP SCHEMA audit CASCADE")

    assert told(external(tmp_path, **urls)["triggers"]) == ("ok", "no log yet: the first start of serve makes its tables")


def test_a_head_that_is_not_that_of_its_leaves_is_a_finding(
    tmp_path: Path, urls: dict[str, str], database_urls: DatabaseUrls, sequencer_url: str, key_folder: KeyFolder
):
    """What makes the process of the log stand still is found by doctor, too, whosever settings it is given."""
    asyncio.run(begin(sequencer_url, key_folder))
    before = external(tmp_path, **urls)["head"]
    as_owner(
        database_urls,
        "ALTER TABLE audit.head DISABLE TRIGGER USER",
        "UPDATE audit.head SET frontier = decode(repeat('ab', octet_length(frontier)), 'hex')",
        "ALTER TABLE audit.head ENABLE ALWAYS TRIGGER move_forward",
    )
    findings = external(tmp_path, **urls)["head"], external(tmp_path, **urls, sequencer_url=sequencer_url)["head"]

    assert told(before) == ("ok", "of size 1, as its hashes and the newest checkpoint say")
    for finding in findings:
        assert finding["level"] == "fail"
        assert "is not that of its leaves; nothing is added to the log or signed" in finding["message"]
        assert "sluice audit verify" in finding["remedy"]


@pytest.mark.parametrize("there", [True, False])
def test_keys_that_are_not_those_of_the_log_are_a_finding(
    tmp_path: Path, urls: dict[str, str], sequencer_url: str, key_folder: KeyFolder, there: bool
):
    """A folder that was lost, or another in its place, is told before the process refuses to start with it, and nothing is made."""
    asyncio.run(begin(sequencer_url, key_folder))
    folder = tmp_path / "other"
    if there:
        KeyFolder(folder, PASSPHRASE).open_or_make(SystemClock().utcnow())
    (tmp_path / "passphrase").write_bytes(PASSPHRASE)
    (tmp_path / "passphrase").chmod(0o600)
    settings = {"keys": str(folder), "passphrase": f"file:{tmp_path}/passphrase"}
    finding = external(tmp_path, {"audit": settings}, **urls, sequencer_url=sequencer_url)["keys"]

    assert finding["level"] == "fail"
    assert finding["message"].startswith(f"the root of this log is {key_folder.root.fingerprint.hex()}, and {folder} has ")
    assert folder.exists() is there


async def begin(sequencer_url: str, keys: KeyFolder) -> None:
    """Begin the log under these keys."""
    async with connected(sequencer_url, timeout_ms=TIMEOUT_MS) as connection:
        await Sequencer(SystemClock()).sequence(connection, await Publisher(keys, SystemClock()).introduce(connection))


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder of keys of today, and in `passphrase` beside it what opens them."""
    KeyFolder(tmp_path / "keys", PASSPHRASE).open_or_make(SystemClock().utcnow())
    (tmp_path / "passphrase").write_bytes(PASSPHRASE)
    (tmp_path / "passphrase").chmod(0o600)
    return tmp_path / "keys"


def of_keys(keys: Path, passphrase: str) -> Findings:
    """What doctor says of `keys` with this setting."""
    return examine("--var", str(keys.parent / "var"), "--set", f"audit.keys={keys}", "--set", f"audit.passphrase={passphrase}")[1]


def listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(file): (file.stat().st_mode, file.read_bytes()) for file in folder.rglob("*") if file.is_file()}


def test_keys_in_order_are_told_with_their_end(keys: Path):
    """Keys that open are named with their subject and last day; the folder is as it was, and the passphrase is not shown."""
    before = listing(keys)
    findings = of_keys(keys, f"file:{keys.parent}/passphrase")

    assert findings["keys"]["level"] == "ok"
    assert findings["keys"]["message"].startswith(f"{keys}: signs as ")
    assert listing(keys) == before
    assert PASSPHRASE.decode() not in json.dumps(findings)


def test_keys_are_opened_in_memory_that_is_written_nowhere(keys: Path, forbidden: list[str], monkeypatch: pytest.MonkeyPatch):
    """Dumps are forbidden before anything secret is read."""

    def known(*where: Any) -> bytes | None:
        forbidden.append("read")
        return known_passphrase(*where)

    monkeypatch.setattr("app.signing.passphrase.known_passphrase", known)
    of_keys(keys, f"file:{keys.parent}/passphrase")

    assert forbidden == ["forbid", "read"]


def test_another_passphrase_is_a_finding(keys: Path):
    """A passphrase that does not open the keys is told with the file that it does not open, and neither passphrase is shown."""
    other = keys.parent / "passphrase"
    other.write_text("battery staple correct")
    findings = of_keys(keys, f"file:{other}")

    assert findings["keys"]["level"] == "fail"
    assert findings["keys"]["message"].startswith(f"{keys}/signers/0001.key: ")
    assert "battery" not in json.dumps(findings)


@pytest.mark.parametrize(("name", "mode"), [("keys", 0o755), ("keys/signers/0001.key", 0o644), ("passphrase", 0o640)])
def test_keys_that_others_could_read_are_a_finding(keys: Path, name: str, mode: int):
    """A folder, key or passphrase that is open to others is named with the command that closes it."""
    (keys.parent / name).chmod(mode)
    finding = of_keys(keys, f"file:{keys.parent}/passphrase")["keys"]

    assert told(finding) == ("fail", f"{keys.parent / name}: open to others (mode {mode:o})")
    assert finding["remedy"].startswith("chmod ")


def test_a_passphrase_beside_its_keys_is_a_finding(keys: Path):
    """What opens the keys does not lie in their folder, where one copy would take both."""
    (keys.parent / "passphrase").rename(keys / "passphrase")

    assert "beside the keys that it opens" in of_keys(keys, f"file:{keys}/passphrase")["keys"]["message"]


def test_a_descriptor_is_left_to_the_process_of_the_log(keys: Path):
    """A passphrase that comes by a descriptor can be read once, so doctor does not."""
    descriptor = os.open(keys.parent / "passphrase", os.O_RDONLY)
    finding = of_keys(keys, f"fd:{descriptor}")["keys"]

    assert told(finding) == ("ok", f"{keys}, not opened: the passphrase is for the process of the log alone")
    assert os.read(descriptor, 100) == PASSPHRASE
    os.close(descriptor)


def test_a_log_of_ones_own_needs_a_passphrase(tmp_path: Path, urls: dict[str, str], sequencer_url: str):
    """With a database of one's own no passphrase is made for trying: the setting is missing."""
    finding = external(tmp_path, **urls, sequencer_url=sequencer_url)["keys"]

    assert told(finding) == ("fail", "audit.passphrase: not set, and the database is not the embedded one")


def test_an_openssl_without_sm2_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the standard's example does not come out, doctor says what cannot be done here."""

    def fails() -> None:
        raise ConfigError("the SM2 of this OpenSSL fails the standard's example", hint="Use another Python.")

    monkeypatch.setattr("app.signing.sm2.self_test", fails)
    finding = examine("--var", str(tmp_path))[1]["sm2"]

    assert told(finding) == (
        "warn",
        "the SM2 of this OpenSSL fails the standard's example; the log cannot be signed or verified here",
    )
    assert finding["remedy"] == "Use another Python."
