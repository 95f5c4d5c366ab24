"""Nights from a real log to the shelf: once, whoever asks, and checked as an auditor does."""

import asyncio
import functools
from datetime import timedelta
from pathlib import Path

import orjson
import pypdfium2 as pdfium
import pytest

from app.audit.format.export_file import lines
from app.audit.records.access import RequestFacts, access_confirmed, sensitive_access
from app.audit.records.report import report_made
from app.audit.verification.verify import verify
from app.cli.report.nightly import make_missing
from app.reports.checking.check import check
from app.reports.evidence.readiness import NightBeforeLog, NightNotOver, NightUnfinished
from app.reports.making.earlier import end_before
from app.reports.shelf import made
from app.reports.shelf.shelf import Shelf
from app.signing.certificates import make_root
from app.signing.sm2 import PrivateKey
from tests.fixtures.made_nights import FIRST, SECOND, manifest, outcomes
from tests.fixtures.making import DAY, OPERATOR, OVER, NightLife, Watched
from tests.fixtures.night import allowed, summary
from tests.fixtures.signing import MADE

JOINS_NONE = "No report of the day before with a good signature was on the shelf to join"
FILES = [
    "decisions.csv",
    "decisions.csv.p7s",
    "entries.csv",
    "entries.csv.p7s",
    "gdpr.pdf",
    "log.jsonl",
    "manifest.json",
    "manifest.json.p7s",
    "mlps.pdf",
    "older.txt",
    "root.pem",
    "verify.sh",
]


def printed(folder: Path) -> str:
    """The words of its mlps.pdf, a space between two."""
    with pdfium.PdfDocument(folder / "mlps.pdf") as pdf:
        return " ".join(" ".join(page.get_textpage().get_text_bounded() for page in pdf).split())


async def test_a_night_is_made_from_the_log_to_the_shelf(over: NightLife):
    """The folder has all files, as they were signed; the log's export in it verifies; the log has its entry with every digest."""
    outcome = await over.maker().make(DAY)

    folder, said = outcome.folder, manifest(outcome.folder)
    assert (outcome.report, outcome.fresh, over.folders()) == (FIRST, True, [FIRST])
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert check(folder, over.materials.keys.root).verdict == "valid"
    with (folder / "log.jsonl").open("rb") as export:
        assert verify(lines(export), over.grown.keys.root).verdict == "whole"
    assert said.counts == {
        "entries": 30,
        "decisions": 119,
        "refused": 27,
        "sensitive_accesses": 5,
        "entries_rows": 30,
        "decisions_rows": 4,
        "missing_characters": 0,
    }
    assert said.versions["models"] == "5e" * 32
    older = (folder / "older.txt").read_text()
    proofs = [f"sluice-audit-proof 1\n{proof}" for proof in older.split("sluice-audit-proof 1\n")[1:]]
    assert ("".join(proofs), [proof.count("index ") for proof in proofs]) == (older, [1] * len(proofs))
    assert all(said.log.note in proof and proof.endswith("-----END CERTIFICATE-----\n") for proof in proofs)
    assert (said.begin, said.end, said.log.verdict, said.made_by) == (
        "2026-01-01T00:00:00.000000Z",
        "2026-01-02T00:00:00.000000Z",
        "whole",
        OPERATOR,
    )
    (entry,) = await over.made()
    assert (entry["outcome"], entry["report"], entry["zone"], entry["count"]) == ("done", FIRST, "UTC", 30)
    assert {file["name"]: file["sm3"] for file in entry["files"][1:]} == {file.name: file.sm3 for file in said.files}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


async def test_characters_that_the_font_lacks_are_counted(night_life: NightLife):
    """The manifest has how many of both reports print as [U+XXXX]: a model's name stands in the tables of accesses of both."""
    life = night_life
    await life.grown.intake.write(allowed(1, MADE, model="m\u202e"))
    life.grown.clock.advance(OVER.total_seconds() * 1000)

    outcome = await life.maker().make(DAY)
    assert manifest(outcome.folder).counts["missing_characters"] >= 2


async def test_a_night_is_made_once_and_again_where_that_is_asked_for(over: NightLife):
    """The log decides, whatever lies on the shelf of this replica; made again, both stay."""
    await over.maker().make(DAY)
    before = {path.name: path.read_bytes() for path in (over.shelf / FIRST).iterdir()}
    elsewhere = over.shelf.with_name("other-shelf")

    second = await over.maker(elsewhere).make(DAY)
    assert (second.report, second.fresh, second.here, elsewhere.exists()) == (FIRST, False, False, False)
    again = await over.maker().make(DAY, again=True)
    assert (again.report, again.fresh, over.folders()) == (SECOND, True, [FIRST, SECOND])
    assert {path.name: path.read_bytes() for path in (over.shelf / FIRST).iterdir()} == before
    assert await outcomes(over) == [("done", FIRST), ("done", SECOND)]


async def test_two_makers_at_once_make_one_night(over: NightLife):
    """The second waits for the first, and finds it made."""
    watched = [Watched(), Watched()]
    found = await asyncio.gather(*(over.maker(progress=one).make(DAY) for one in watched))

    assert sorted(one.fresh for one in found) == [False, True]
    assert sorted(one.stages for one in watched) == [["export", "verify", "gather", "write", "sign"], ["wait"]]
    assert (over.folders(), await outcomes(over)) == ([FIRST], [("done", FIRST)])


async def test_an_empty_night_is_a_report_with_zeros(night_life: NightLife):
    """Nothing was written that day; the reports say so, signed, and the export proves it."""
    await night_life.grown.intake.write(summary(5, MADE - timedelta(days=2)), summary(6, MADE - timedelta(days=2)))
    night_life.grown.clock.advance(OVER.total_seconds() * 1000)
    outcome = await night_life.maker().make(DAY)

    said = manifest(outcome.folder)
    assert set(said.counts.values()) == {0}
    assert (said.log.verdict, said.log.first, said.log.end) == ("whole", 2, 2)
    assert check(outcome.folder, night_life.materials.keys.root).verdict == "valid"
    assert (outcome.folder / "entries.csv").read_bytes().count(b"\r\n") == 1


async def test_a_day_that_is_not_over_is_refused_with_its_time(night_life: NightLife):
    """The answer names the instant from when on it can be made; nothing is begun."""
    night_life.grown.clock.advance(timedelta(days=1, minutes=14).total_seconds() * 1000)
    with pytest.raises(NightNotOver, match=r"2026-01-02T00:15:00\.000000Z"):
        await night_life.maker().make(DAY)
    assert night_life.folders() == []


async def test_a_log_that_was_tampered_with_is_reported_as_such(over: NightLife):
    """The reports are made, signed, and say what the verifier says."""
    await over.settled()
    await over.grown.damage("UPDATE audit.body SET body = replace(convert_from(body, 'UTF8'), 'acme', 'evil')::bytea WHERE seq = 6")
    outcome = await over.maker().make(DAY)

    said = manifest(outcome.folder)
    assert (said.log.verdict, said.counts["entries"]) == ("tampered", 29)
    assert check(outcome.folder, over.materials.keys.root).verdict == "valid"


async def test_a_night_is_not_made_while_entries_wait(over: NightLife):
    """With the log's process away, entries of the day are not in the log yet: nothing is made, and the log will say so."""
    await over.settled()
    await over.stop()
    await over.grown.intake.write(summary(5, MADE))
    with pytest.raises(NightUnfinished, match="2026-01-01T00:01:00"):
        await over.maker().make(DAY)
    assert over.folders() == []
    await over.grown.add()
    assert [entry["outcome"] for entry in await over.made()] == ["failed"]


async def test_a_night_of_a_maker_whose_clock_is_ahead_is_not_made_again(over: NightLife):
    """Its entry, recorded tomorrow by that clock, waits in the intake while nobody sequences: the next maker waits for it, and finds it."""
    await over.settled()
    made = report_made(
        recorded=MADE + timedelta(days=9),
        operator=OPERATOR,
        report=FIRST,
        period=DAY.period,
        zone="UTC",
        files=[("mlps.pdf", "00")],
        count=1,
    )
    await over.stop()
    await over.grown.intake.write(made)
    with pytest.raises(NightUnfinished):
        await over.maker().make(DAY)
    await over.grown.add()
    outcome = await over.maker().make(DAY)
    assert (outcome.report, outcome.fresh) == (FIRST, False)


async def test_an_access_that_a_killed_serve_left_open_is_an_incident(over: NightLife):
    """The maker tells the log, once, and the same night's report names the incident; what was confirmed is none."""
    open_, met = (RequestFacts("gateway", "acme", "m", f"0192aaaa-0000-7000-8000-00000000000{n}", subject="p1:" + "0" * 64) for n in (1, 2))
    accesses = [
        sensitive_access(facts, "unconfirmed", recorded=MADE + timedelta(hours=3), retention_days=365, obligations=["mask"])
        for facts in (open_, met)
    ]
    confirmed = access_confirmed(met, recorded=MADE + timedelta(hours=4), retention_days=365, obligations_met=["mask"])
    await over.grown.intake.write(*accesses, confirmed)
    folder = (await over.maker().make(DAY)).folder
    await over.maker().make(DAY, again=True)

    found = await over.grown.rows("SELECT seq, body FROM audit.body WHERE kind = 'obligation.unmet' ORDER BY seq")
    incidents = {said["decision_id"]: seq for seq, body in found if (said := orjson.loads(body))["reason"] == "killed"}
    assert len(incidents) == sum(orjson.loads(body)["reason"] == "killed" for _, body in found)
    assert met.decision_id not in incidents
    assert str(incidents[open_.decision_id]) in printed(folder).split()


async def test_a_night_begins_where_the_report_of_the_day_before_ends(over: NightLife):
    """An entry between the two whose time is of neither day is in the second's file; it rests on a good manifest of that day and log alone."""
    await over.grown.intake.write(summary(5, MADE + timedelta(days=30)))
    await over.settled()
    first = (await over.maker().make(DAY)).folder
    over.grown.clock.advance(timedelta(days=1).total_seconds() * 1000)
    second = (await over.maker().make(DAY.next())).folder
    end = manifest(first).log.end
    assert (end, manifest(second).log.first, manifest(second).log.verdict) == (30, 30, "whole")
    assert JOINS_NONE not in printed(second)

    shelf, root, log_root = Shelf(over.shelf), over.materials.keys.root, over.grown.keys.root
    assert end_before(DAY.next(), shelf, root, log_root) == end
    another = make_root(PrivateKey.generate(), MADE)
    assert end_before(DAY.next(), shelf, another, log_root) is None  # nobody signed it
    assert end_before(DAY.next(), shelf, root, another) is None  # it is of another log
    first.rename(over.shelf / SECOND)  # another report's folder under this name
    assert end_before(DAY.next(), shelf, root, log_root) is None
    alone = (await over.maker().make(DAY.next(), again=True)).folder
    assert manifest(alone).log.first == end + 1
    assert JOINS_NONE in printed(alone)


async def test_a_night_before_the_log_began_is_not_made(over: NightLife):
    """It would have verdicts on a day of which nothing is known; the log is not told of a slip of the pen."""
    await over.settled()
    with pytest.raises(NightBeforeLog, match="2025-12-31 in UTC was over before the log began on 2026-01-01"):
        await over.maker().make(DAY.previous())
    with pytest.raises(NightBeforeLog, match="--until: 2025-12-31 in UTC was over before the log began"):
        await make_missing(over.maker(), "UTC", DAY.previous())
    assert (over.folders(), await over.made()) == ([], [])


async def test_nothing_after_the_last_night_that_is_wanted_is_made(over: NightLife):
    """The timer names the newest whose time has come."""
    await over.settled()
    over.grown.clock.advance(timedelta(days=1).total_seconds() * 1000)
    await make_missing(over.maker(), "UTC", DAY)
    assert over.folders() == [FIRST]


async def test_nights_beyond_a_month_are_told(over: NightLife, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """The newest are made, and the command says how many older ones wait for the next run."""
    await over.settled()
    over.grown.clock.advance(timedelta(days=2).total_seconds() * 1000)
    monkeypatch.setattr(made, "missing_nights", functools.partial(made.missing_nights, most=1))
    await make_missing(over.maker(), "UTC")
    assert over.folders() == ["2026-01-03-utc-1"]
    assert capsys.readouterr().err == "2 nights before 2026-01-03 are left out; run it again for them\n"
    await make_missing(over.maker(), "UTC", DAY)  # one of those that are left out where the newest come first
    assert over.folders() == [FIRST, "2026-01-03-utc-1"]
