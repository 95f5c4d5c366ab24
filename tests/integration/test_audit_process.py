"""The log's own process on a real PostgreSQL: it leads or stands by, sequences, signs, takes new keys and ends in good order."""

import asyncio
import base64
import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from app.audit.format.checkpoint import KEY_ID_BYTES
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.lag import LEADER_LOCK, TENDING_LOCK
from app.audit.sequencing.process import LogProcess
from app.clock import ManualClock
from app.database import DatabaseUrls, create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from app.signing.certificates import Certificate
from app.signing.keys import KeyFolder
from app.signing.sm2 import PrivateKey
from tests.fixtures.audit_process import ROOT, AuditProcess, arguments
from tests.fixtures.entries import numbered
from tests.fixtures.postgres import TIMEOUT_MS, rows_of
from tests.fixtures.signing import MADE, PASSPHRASE
from tests.fixtures.waiting import until
from tests.fixtures.whole_log import size_of_whole_log

OPENSSL = shutil.which("openssl")
ENDS_WITHIN_S = 10.0


@dataclass(frozen=True)
class Tended:
    """A log in a database of its own, and what a process needs to tend it, on a clock that we move."""

    urls: DatabaseUrls
    sequencer_url: str
    superuser_url: str
    keys: KeyFolder
    intake: Intake
    clock: ManualClock

    def process(self) -> LogProcess:
        """One process of the log, which does not run yet."""
        return LogProcess(self.sequencer_url, self.keys, self.clock, timeout_ms=TIMEOUT_MS)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """One process's whole life."""
        process = self.process()
        task = asyncio.create_task(process.run())
        yield
        process.bell.end()
        await asyncio.wait_for(task, ENDS_WITHIN_S)

    async def write(self, entries: int = 1) -> None:
        """Hand over that many entries."""
        await self.intake.write(*(numbered(number) for number in range(entries)))

    async def sizes(self) -> list[int]:
        """Of all checkpoints."""
        return [size for (size,) in await rows_of(self.urls.log, "SELECT size FROM audit.checkpoint ORDER BY size")]

    async def kinds(self) -> list[str]:
        """Of all entries."""
        return [kind for (kind,) in await rows_of(self.urls.log, "SELECT kind FROM audit.body ORDER BY seq")]

    async def waiting(self) -> int:
        """Rows in the intake."""
        [(count,)] = await rows_of(self.urls.owner, "SELECT count(*) FROM audit.intake")
        return count

    async def locks(self) -> set[int]:
        """Advisory locks that anybody holds in this database."""
        held = "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        return {lock for (lock,) in await rows_of(self.superuser_url, held)}

    async def grown_to(self, size: int) -> None:
        """Wait until the log has this many entries."""
        await self._wait("SELECT size FROM audit.head", size)

    async def signed_to(self, size: int) -> None:
        """Wait until a checkpoint has this many."""
        await self._wait("SELECT max(size) FROM audit.checkpoint", size)

    async def _wait(self, statement: str, size: int) -> None:
        async with asyncio.timeout(ENDS_WITHIN_S):
            while await rows_of(self.urls.log, statement) != [(size,)]:  # noqa: ASYNC110 - the database has no event
                await asyncio.sleep(0.01)


@pytest.fixture
async def tended(database_urls: DatabaseUrls, sequencer_url: str, superuser_url: str, key_folder: KeyFolder) -> AsyncIterator[Tended]:
    engine = create_engine(database_urls.intake, DatabaseSettings())
    intake = Intake(engine, Metrics(), Gaps(ManualClock()), timeout_ms=TIMEOUT_MS)
    yield Tended(database_urls, sequencer_url, superuser_url, key_folder, intake, ManualClock())
    await engine.dispose()


def troubles(lines: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    """Lines that say that the log stands still."""
    return [line for line in lines if line["event"] == "the log stands still"]


async def test_a_new_log_begins_with_its_signer(tended: Tended):
    """The first entry names the certificate that signs, both certificates are there, and the first checkpoint covers it."""
    async with tended.running():
        await tended.signed_to(1)

    [(body,)] = await rows_of(tended.urls.log, "SELECT body FROM audit.body")
    assert orjson.loads(body)["after"]["fingerprint"] == tended.keys.certificate.fingerprint.hex()
    assert (orjson.loads(body)["kind"], orjson.loads(body)["operator"]) == ("key.created", "sluice")
    certificates = await rows_of(tended.urls.log, "SELECT role, der FROM audit.certificate ORDER BY role")
    assert certificates == [("root", tended.keys.root.der), ("signer", tended.keys.certificate.der)]
    assert await size_of_whole_log(tended.urls.owner) == 1


async def test_a_checkpoint_a_second_is_signed_while_the_log_grows(tended: Tended):
    """Until the second is over entries wait for their signature; without new ones there is nothing to sign."""
    async with tended.running():
        await tended.signed_to(1)
        tended.clock.advance(999)
        await tended.write()
        await tended.grown_to(2)
        await tended.write()
        await tended.grown_to(3)
        assert await tended.sizes() == [1]

        tended.clock.advance(1)
        await tended.signed_to(3)
        tended.clock.advance(60_000)
        await tended.write()
        await tended.signed_to(4)
    assert await tended.sizes() == [1, 3, 4]


async def test_a_checkpoint_is_signed_at_once_where_somebody_asks(tended: Tended):
    """Any role may ask; who asks again gets no second one of that size."""
    async with tended.running():
        await tended.signed_to(1)
        await tended.write()
        await tended.grown_to(2)
        for _ in range(3):
            tended.clock.advance(50)
            await rows_of(tended.urls.log, "NOTIFY sluice_checkpoint")
            await tended.signed_to(2)
    assert await tended.sizes() == [1, 2]


async def test_an_end_in_good_order_leaves_nothing_waiting_or_unsigned(tended: Tended):
    """Whatever was in the intake when the end was asked for is in the log, under the last checkpoint."""
    async with tended.running():
        await tended.signed_to(1)
        await tended.write(50)

    assert (await tended.sizes())[-1] == 51
    assert await size_of_whole_log(tended.urls.owner) == 51


async def test_a_rotated_key_signs_from_the_next_checkpoint_on(tended: Tended, keys_path: Path):
    """Within a second the log has the new certificate and an entry about it and about who did it, under the new signature."""
    old = tended.keys.certificate
    async with tended.running():
        await tended.signed_to(1)
        folder = KeyFolder(keys_path, PASSPHRASE)
        new = await asyncio.to_thread(folder.rotate, tended.clock.utcnow(), operator="cli:alice")
        tended.clock.advance(1000)
        await tended.signed_to(2)

    assert await tended.kinds() == ["key.created", "key.rotated"]
    [(body,)] = await rows_of(tended.urls.log, "SELECT body FROM audit.body WHERE kind = 'key.rotated'")
    states = orjson.loads(body)
    assert states["operator"] == "cli:alice"
    assert [states[when]["fingerprint"] for when in ("before", "after")] == [old.fingerprint.hex(), new.fingerprint.hex()]
    assert await size_of_whole_log(tended.urls.owner) == 2


async def test_a_restart_says_nothing_new_about_its_keys(tended: Tended):
    """Certificates that the log has are no news."""
    for _ in range(2):
        async with tended.running():
            await tended.signed_to(1)
    assert await tended.kinds() == ["key.created"]


async def test_an_ended_certificate_signs_nothing_and_stops_nothing(tended: Tended):
    """Verifiers would refuse its signatures; entries go on into the log and are signed by the next key."""
    async with tended.running():
        await tended.signed_to(1)
        tended.clock.advance((tended.keys.certificate.not_after - tended.clock.utcnow()) / timedelta(milliseconds=1) + 1)
        await tended.write()
        await tended.grown_to(2)
    assert await tended.sizes() == [1]


async def test_a_standby_leads_within_a_second_of_the_leaders_end(tended: Tended):
    """Of two processes one leads; the other does nothing until the first one's session is gone, and then goes on where it ended."""
    holders = "SELECT pid FROM pg_locks WHERE mode = 'ExclusiveLock' AND locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    async with tended.running():
        await tended.signed_to(1)
        async with tended.running():
            [(leader,)] = await rows_of(tended.superuser_url, holders)
            await rows_of(tended.superuser_url, "SELECT pg_terminate_backend(%s)", leader)
            await tended.write()
            await tended.grown_to(2)
            assert [pid for (pid,) in await rows_of(tended.superuser_url, holders)] != [leader]


async def test_a_writer_that_is_years_ahead_does_not_spoil_the_log(tended: Tended):
    """What is recorded after the end of the signer's certificate is kept as no entry: verifiers would call the log forged for ever."""
    ends = tended.keys.certificate.not_after
    async with tended.running():
        await tended.signed_to(1)
        await tended.intake.write(numbered(1, recorded=ends), numbered(2, recorded=ends + timedelta(microseconds=1)))
        await tended.grown_to(3)
    assert await tended.kinds() == ["key.created", "decisions.minute", "audit.malformed"]


async def test_a_standby_ends_at_once(tended: Tended):
    """Who waits for the lead holds nothing, and ends while another leads."""
    async with tended.running():
        await tended.signed_to(1)
        async with tended.running():
            pass
        await tended.write()
        await tended.grown_to(2)


async def test_what_its_certificate_does_not_verify_is_not_stored(tended: Tended, monkeypatch: pytest.MonkeyPatch):
    """A key that is not the certificate's signs nothing that anybody would see; entries go on into the log."""
    monkeypatch.setattr(tended.keys, "signer", PrivateKey.generate())
    async with tended.running():
        await tended.write()
        await tended.grown_to(2)
    assert await tended.sizes() == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE audit.head SET frontier = decode(repeat('ab', 64), 'hex')",
        "UPDATE audit.leaf SET leaf_hash = decode(repeat('ab', 32), 'hex') WHERE seq = 1",
        "DELETE FROM audit.leaf WHERE seq = 2",
        "UPDATE audit.head SET size = 2, frontier = (SELECT frontier FROM before)",
    ],
)
async def test_a_log_that_was_changed_behind_our_back_is_neither_continued_nor_signed(tended: Tended, damage: str):
    """Entries stay in the intake until somebody has looked: a signature would make the damage the log's own word."""
    async with tended.running():
        await tended.write()
        await tended.grown_to(2)
        await rows_of(tended.superuser_url, "CREATE TABLE before AS SELECT frontier FROM audit.head")
        await tended.write()
    signed = await tended.sizes()
    for table in ("head", "leaf"):
        await rows_of(tended.superuser_url, f"ALTER TABLE audit.{table} DISABLE TRIGGER USER")
    await rows_of(tended.superuser_url, damage)
    await tended.write()

    with capture_logs() as lines:
        async with tended.running():
            await until(lambda: troubles(lines), within_s=ENDS_WITHIN_S)
            assert await tended.locks() == {LEADER_LOCK}
    assert [line["advice"] for line in troubles(lines)] == [LogDamaged.hint]
    assert await tended.sizes() == signed
    assert await tended.waiting() == 1


def files_in(folder: Path) -> set[str]:
    """Everything below it."""
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


def another_folder(folder: Path) -> KeyFolder:
    """Keys that no log has seen."""
    keys = KeyFolder(folder, PASSPHRASE)
    keys.open_or_make(MADE)
    return keys


async def test_a_log_that_gets_on_is_seen_to(tended: Tended):
    """Who leads holds a second lock for as long as its work goes well, which readiness looks at."""
    async with tended.running():
        await tended.signed_to(1)
        assert await tended.locks() == {LEADER_LOCK, TENDING_LOCK}
    assert await tended.locks() == set()


async def test_keys_under_another_root_neither_lead_nor_write(tended: Tended, tmp_path: Path):
    """A log has one root for ever: whatever database comes back, keys of another root leave it as it was and say both fingerprints."""
    async with tended.running():
        await tended.signed_to(1)
    await tended.write()
    other = another_folder(tmp_path / "other")
    with capture_logs() as lines:
        async with replace(tended, keys=other).running():
            await until(lambda: troubles(lines), within_s=ENDS_WITHIN_S)
            assert await tended.locks() == set()

    reason = f"the root of this log is {tended.keys.root.fingerprint.hex()}, and {other.path} has another, {other.root.fingerprint.hex()}"
    assert [(line["reason"]) for line in troubles(lines)] == [reason]
    assert await tended.sizes() == [1]
    assert await tended.waiting() == 1
    assert await rows_of(tended.urls.log, "SELECT count(*) FROM audit.certificate") == [(2,)]


async def test_who_stood_by_with_another_root_leaves_the_lead(tended: Tended, tmp_path: Path):
    """Where the log began meanwhile, a process with other keys gives the lead back at once, to one that may have it."""
    other = replace(tended, keys=another_folder(tmp_path / "other"))
    async with tended.running(), other.running():
        await tended.signed_to(1)
    [(root,)] = await rows_of(tended.urls.log, "SELECT der FROM audit.certificate WHERE role = 'root'")
    mine, theirs = (tended, other) if root == tended.keys.root.der else (other, tended)
    async with theirs.running(), mine.running():
        await tended.write()
        await tended.grown_to(2)


async def test_a_folder_that_is_put_in_place_of_ours_is_not_followed(tended: Tended, keys_path: Path, tmp_path: Path):
    """A running process goes on with the keys it has, and signs under no other root, however many signers the new folder has."""
    with capture_logs() as lines:
        async with tended.running():
            await tended.signed_to(1)
            shutil.move(keys_path, tmp_path / "away")
            await tended.write()
            tended.clock.advance(1000)
            await tended.signed_to(2)
            another_folder(keys_path).rotate(MADE)
            tended.clock.advance(1000)
            await until(lambda: any(line["event"] == "the new signer was not taken" for line in lines), within_s=ENDS_WITHIN_S)
            await tended.write()
            tended.clock.advance(1000)
            await tended.signed_to(3)
    assert await rows_of(tended.urls.log, "SELECT count(*) FROM audit.certificate") == [(2,)]
    assert await size_of_whole_log(tended.urls.owner) == 3


@pytest.mark.skipif(OPENSSL is None, reason="the openssl program is not installed")
async def test_openssl_verifies_what_a_real_process_signs(tended: Tended, start_audit: Callable[[str], AuditProcess], tmp_path: Path):
    """Nothing of ours is needed to check a checkpoint, only the certificate that the log shows."""
    audit = start_audit(tended.sequencer_url)
    await tended.write(10)
    await tended.signed_to(11)
    assert await asyncio.to_thread(audit.stop) == 0

    [(note,)] = await rows_of(tended.urls.log, "SELECT note FROM audit.checkpoint WHERE size = 11")
    [(der,)] = await rows_of(tended.urls.log, "SELECT der FROM audit.certificate WHERE role = 'signer'")
    text, _, line = note.partition("\n\n")
    (tmp_path / "text").write_text(text + "\n")
    (tmp_path / "signature").write_bytes(base64.b64decode(line.split()[2])[KEY_ID_BYTES:])
    (tmp_path / "signer.pem").write_text(Certificate.load(der).pem)
    assert "OK" in await asyncio.to_thread(verified_by_openssl, tmp_path)


def verified_by_openssl(folder: Path) -> str:
    """What openssl says to `signature` of `text` by the key of `signer.pem`."""

    def openssl(*arguments: str) -> bytes:
        return subprocess.run([str(OPENSSL), *arguments], cwd=folder, check=True, capture_output=True).stdout

    (folder / "public.pem").write_bytes(openssl("x509", "-in", "signer.pem", "-noout", "-pubkey"))
    identity = ("-sigopt", "distid:1234567812345678")
    return openssl("dgst", "-sm3", "-verify", "public.pem", *identity, "-signature", "signature", "text").decode()


async def test_a_real_process_may_leave_no_core(tended: Tended, start_audit: Callable[[str], AuditProcess]):
    """Where its memory went, its key went, too."""
    audit = start_audit(tended.sequencer_url)
    await asyncio.to_thread(audit.wait_for, "leading")

    limits = await asyncio.to_thread(Path(f"/proc/{audit.process.pid}/limits").read_text)
    assert "Max core file size 0 0 bytes" in [" ".join(line.split()) for line in limits.splitlines()]


async def test_a_signal_ends_a_real_process_with_everything_signed(tended: Tended, start_audit: Callable[[str], AuditProcess]):
    """Ctrl-C as well as SIGTERM: what was handed over before is in the log and under a checkpoint when it is gone."""
    for how in (signal.SIGTERM, signal.SIGINT):
        audit = start_audit(tended.sequencer_url)
        await asyncio.to_thread(audit.wait_for, "leading")
        await tended.write(20)
        assert await asyncio.to_thread(audit.stop, how) == 0
        assert await tended.waiting() == 0
        assert (await tended.sizes())[-1] == await size_of_whole_log(tended.urls.owner)


def refusal(*settings: str) -> tuple[int, str]:
    """How a start ends that must not succeed."""
    command = [sys.executable, "-m", "app.cli", "audit", "run", *settings]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def test_a_start_without_its_database_says_so(tmp_path: Path):
    """No serve on this folder: exit 6, and what to do."""
    code, said = refusal("--var", str(tmp_path))

    assert code == 6
    assert "serve is not running" in said


async def test_a_start_with_too_many_rights_is_refused(tended: Tended, keys_path: Path, tmp_path: Path):
    """Whoever could rewrite the log must not keep it: neither its owner nor a superuser."""
    for url in (tended.superuser_url, tended.urls.owner):
        code, said = await asyncio.to_thread(refusal, "--var", str(tmp_path), *arguments(url, keys_path, tmp_path / "passphrase"))
        assert code == 2
        assert "could rewrite the log" in said


@pytest.mark.parametrize("folder", ["away", "other"])
async def test_a_start_without_the_keys_of_the_log_makes_none(tended: Tended, tmp_path: Path, folder: str):
    """With the folder lost, or another in its place, nothing is made or written, and the remedy is said."""
    async with tended.running():
        await tended.signed_to(1)
    here = f"has another, {another_folder(tmp_path / folder).root.fingerprint.hex()}" if folder == "other" else "has none"
    before = files_in(tmp_path)
    settings = arguments(tended.sequencer_url, tmp_path / folder, tmp_path / "passphrase")
    code, said = await asyncio.to_thread(refusal, "--var", str(tmp_path / "var"), *settings)

    assert code == 2
    assert f"the root of this log is {tended.keys.root.fingerprint.hex()}, and {tmp_path / folder} {here}" in said
    assert "from its backup" in said
    assert files_in(tmp_path) - before == {"passphrase", "sequencer-url"}
    assert await tended.sizes() == [1]


async def test_a_start_with_the_wrong_passphrase_is_refused(tended: Tended, keys_path: Path, tmp_path: Path):
    """No keys, no start: and nothing of the passphrase in what is said."""
    settings = arguments(tended.sequencer_url, keys_path, tmp_path / "passphrase")
    (tmp_path / "passphrase").write_text("something else entirely")
    code, said = await asyncio.to_thread(refusal, "--var", str(tmp_path / "var"), *settings)

    assert code == 2
    assert "audit.passphrase" in said
    assert "something else" not in said
