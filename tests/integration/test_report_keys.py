"""The keys of reports on a real log: one root for all replicas, made once, and never by the way where there was one."""

import asyncio
import shutil
from pathlib import Path

import pytest

from app.clock import ManualClock
from app.errors import ConfigError
from app.reports.evidence.readiness import NightUnfinished
from app.reports.making.lock import KeysBusy, keys_locked
from app.reports.making.maker import Maker
from app.reports.making.report_keys import open_keys, signers_told_of
from app.settings import Settings
from app.signing.keys import KeyFolder
from app.signing.passphrase import passphrase_of
from app.signing.uses import REPORTS
from tests.fixtures.making import DAY, OVER, NightLife
from tests.fixtures.night import eventful

pytestmark = pytest.mark.usefixtures("quick_encryption")

TOLD = "SELECT FROM audit.body WHERE kind = 'key.created' AND position('\"use\":\"report\"'::bytea IN body) > 0"


class Replica:
    """A process with a --var of its own, on the log of the others."""

    def __init__(self, life: NightLife, var: Path) -> None:
        self.maker: Maker = life.maker()
        self.var = var
        self.clock = ManualClock(life.grown.clock.utcnow())

    async def open(self) -> KeyFolder:
        """As a run of `sluice report nightly` does."""
        return await open_keys(Settings(), self.var, self.clock, self.maker.transactions, self.maker.writing, sleep=self.maker.sleep)

    @property
    def folder(self) -> Path:
        """Of its keys."""
        return self.var / "report-keys"

    def made_by(self, operator: str | None) -> KeyFolder:
        """Keys that the log does not hear of yet."""
        keys = KeyFolder(self.folder, passphrase_of(Settings(), self.var, REPORTS), REPORTS)
        keys.make(self.clock.utcnow(), operator=operator)
        return keys


@pytest.fixture
def replicas(night_life: NightLife, tmp_path: Path) -> tuple[Replica, Replica]:
    """Two of them."""
    first, second = tmp_path / "first", tmp_path / "second"
    for var in (first, second):
        var.mkdir()
    return Replica(night_life, first), Replica(night_life, second)


async def test_of_two_replicas_on_the_first_evening_one_makes_keys(replicas: tuple[Replica, Replica], night_life: NightLife):
    """The other is told that there are some, and has none; the log has heard of one signer, before any night was made."""
    outcomes = await asyncio.gather(*(replica.open() for replica in replicas), return_exceptions=True)
    (made,) = [one for one in outcomes if isinstance(one, KeyFolder)]
    (refused,) = [one for one in outcomes if isinstance(one, ConfigError)]

    assert "has no keys, and the log says that there are some elsewhere" in refused.message
    assert "copy it from the replica that signs" in refused.advice
    assert sum(replica.folder.exists() for replica in replicas) == 1
    assert len(await night_life.grown.rows(TOLD)) == 1

    (left,) = [replica for replica in replicas if not replica.folder.exists()]
    shutil.copytree(made.path, left.folder)
    shutil.copytree(made.path.parent / "secrets", left.var / "secrets")
    assert (await left.open()).root.fingerprint == made.root.fingerprint
    assert len(await night_life.grown.rows(TOLD)) == 1


async def test_keys_of_a_start_that_was_killed_give_way(replicas: tuple[Replica, Replica]):
    """Made and never told of, they are the first where nobody else was quicker, and sign nothing where somebody was."""
    killed, other = replicas
    killed.made_by(None)
    made = await other.open()
    before = sorted(killed.folder.rglob("*"))

    with pytest.raises(ConfigError, match="has keys that were made by the way, and the log says that others sign") as refused:
        await killed.open()
    assert "Move that folder away" in refused.value.advice
    assert sorted(killed.folder.rglob("*")) == before
    assert (await other.open()).root.fingerprint == made.root.fingerprint


async def test_keys_that_nobody_was_quicker_than_are_told_of(replicas: tuple[Replica, Replica], night_life: NightLife):
    """A start that was killed goes on with what it made; another replica finds the entry."""
    killed, other = replicas
    made = killed.made_by(None)

    assert (await killed.open()).root.fingerprint == made.root.fingerprint
    assert len(await night_life.grown.rows(TOLD)) == 1
    assert await signers_told_of(other.maker.transactions) == {made.certificate.fingerprint.hex()}
    with pytest.raises(ConfigError, match="has no keys"):
        await other.open()


async def test_an_operators_keys_take_over(replicas: tuple[Replica, Replica], night_life: NightLife):
    """Where the first were lost, those that somebody made by command sign from now on, and the log says who made them."""
    first, second = replicas
    await first.open()
    made = second.made_by("cli:wei")

    assert (await second.open()).root.fingerprint == made.root.fingerprint
    (row,) = await night_life.grown.rows(f"SELECT body {TOLD.removeprefix('SELECT')} AND position('cli:wei'::bytea IN body) > 0")
    assert made.certificate.fingerprint.hex().encode() in bytes(row[0])


async def test_no_key_is_made_while_the_log_stands_still(replicas: tuple[Replica, Replica], night_life: NightLife):
    """The entry of another replica's keys may be what waits: nobody knows whether there are any."""
    first, second = replicas
    await night_life.settled()
    await night_life.stop()
    with pytest.raises(NightUnfinished):
        await first.open()  # made, and told of, and nobody adds that to the log
    with pytest.raises(NightUnfinished):
        await second.open()
    assert not second.folder.exists()


async def test_who_makes_keys_for_too_long_is_told(replicas: tuple[Replica, Replica]):
    """The lock is held elsewhere: no keys, and an error that says so within a minute of that clock."""
    first, second = replicas
    async with keys_locked(first.maker.writing):
        with pytest.raises(KeysBusy, match="by another process since 60 s"):
            await second.open()
    assert not second.folder.exists()


async def test_keys_are_made_for_the_first_night_alone(replicas: tuple[Replica, Replica], night_life: NightLife):
    """Once a night was signed missing keys are lost: nothing is made, unasked, under another root, whatever else the log has."""
    first, second = replicas
    await night_life.grown.intake.write(*eventful())
    night_life.grown.clock.advance(OVER.total_seconds() * 1000)
    await night_life.maker().make(DAY)
    await night_life.settled()
    with pytest.raises(ConfigError, match=r"report\.keys: .* has no keys, and .* signed once since 2026-01-02") as refused:
        await first.open()
    assert "`sluice report keys init` makes new keys" in refused.value.advice
    assert not first.folder.exists()
    assert not second.folder.exists()
