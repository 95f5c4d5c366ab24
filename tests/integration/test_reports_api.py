"""/reports over HTTP: what is there, and whether it is as it was signed and as the log says."""

import asyncio
import os
import shutil
from pathlib import Path

import orjson
import pytest
from fastapi import FastAPI

from app.audit.records.entry import Entry
from app.audit.records.report import report_made
from app.database import DatabaseDown
from app.reports.shelf.compared import all_of, made_or_none
from app.reports.shelf.shelf import Shelf
from tests.fixtures.asgi import call
from tests.fixtures.log import GrownLog
from tests.fixtures.making import DAY
from tests.fixtures.reports_api import FILES, REPORT, get, reads
from tests.fixtures.signed_reports import CSV, Keys, file_line, night
from tests.fixtures.signing import MADE


async def test_nights_are_listed_with_their_state(report_api: FastAPI, grown_log: GrownLog, report_shelf: Path):
    """A night that is as it was signed is valid; with a byte changed it is tampered with, and the answer says where; without a root nobody knows."""
    (line,) = (await get(report_api, "/reports")).json["reports"]
    assert line["verification"] == {"verdict": "valid", "why": ""}
    assert (line["report"], line["day"], line["zone"], line["counts"]) == (REPORT, "2026-11-29", "Asia/Shanghai", {"entries": 7})

    (report_shelf / "decisions.csv").write_bytes(CSV.replace(b"7", b"8"))
    state = (await get(report_api, f"/reports/{REPORT}")).json["verification"]
    assert state["verdict"] == "tampered"
    assert "decisions.csv" in state["why"]

    (report_shelf / "decisions.csv").write_bytes(CSV)
    (report_shelf.parents[1] / "root.pem").unlink()
    (line,) = (await get(report_api, "/reports")).json["reports"]
    assert line["verification"]["verdict"] == "unchecked"
    assert await reads(grown_log) == []


async def test_a_night_whose_manifest_is_gone_is_listed_as_such(report_api: FastAPI, report_shelf: Path):
    """It says nothing of itself, and is not whole; the other nights are listed all the same."""
    (report_shelf / "manifest.json").unlink()
    (line,) = (await get(report_api, "/reports")).json["reports"]
    assert (line["report"], line["day"], line["counts"]) == (REPORT, None, None)
    assert line["verification"]["verdict"] != "valid"
    reply = await get(report_api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.json["code"]) == (422, "not_a_manifest")
    assert (await get(report_api, f"/reports/{REPORT}/manifest.json.p7s")).status == 200


@pytest.mark.parametrize(
    ("said", "instead"),
    [(b'"entries": 7', b'"entries": "7"'), (b'"day": "2026-11-29"', b'"day": 5'), (b'"name": "log.jsonl"', b'"name": 5')],
)
async def test_a_manifest_with_other_types_harms_no_list(report_api: FastAPI, report_shelf: Path, said: bytes, instead: bytes):
    """What somebody wrote into a manifest is told as such, and no answer fails over it."""
    (report_shelf / "manifest.json").write_bytes(FILES["manifest.json"].replace(said, instead))
    (line,) = (await get(report_api, "/reports")).json["reports"]
    assert (line["day"], line["verification"]["verdict"]) == (None, "tampered")
    assert (await get(report_api, f"/reports/{REPORT}")).status == 422


async def test_a_good_night_under_the_name_of_another_is_not_valid(report_api: FastAPI, report_shelf: Path):
    """A folder that was copied over another day is as it was signed, and not what its name says."""
    shutil.move(report_shelf, report_shelf.with_name("2026-11-28-asia-shanghai-1"))
    (line,) = (await get(report_api, "/reports")).json["reports"]
    assert (line["report"], line["verification"]["verdict"]) == ("2026-11-28-asia-shanghai-1", "tampered")
    assert REPORT in line["verification"]["why"]


async def test_what_the_log_says_was_made_is_listed_where_it_is_not_here(report_api: FastAPI, grown_log: GrownLog, report_shelf: Path):
    """A night that was deleted is missing; one that was exchanged for another that is signed, too, is tampered; the list asks no file."""
    manifests = {"2026-11-28-asia-shanghai-1": "00" * 32, REPORT: file_line("manifest.json", FILES["manifest.json"]).sm3}
    await grown_log.add(*(report(name, sm3) for name, sm3 in manifests.items()))
    assert await verdicts(report_api) == [(REPORT, "valid"), ("2026-11-28-asia-shanghai-1", "missing")]
    await grown_log.add(report(REPORT, "11" * 32))
    assert (await verdicts(report_api))[0] == (REPORT, "tampered")
    assert (await get(report_api, f"/reports/{REPORT}")).json["verification"]["verdict"] == "tampered"


async def test_under_another_root_a_night_needs_the_word_of_the_log(report_api: FastAPI, grown_log: GrownLog, report_shelf: Path):
    """Who can write to the shelf can sign a night and lay his root beside it; one that was made before keys were lost is in the log."""
    forged = night(Keys.make())
    for name, content in forged.items():
        (report_shelf / name).write_bytes(content)
    assert await verdicts(report_api) == [(REPORT, "tampered")]
    assert (await call(report_api, "HEAD", f"/reports/{REPORT}/mlps.pdf")).headers["sluice-report-state"] == "tampered"
    await grown_log.add(report(REPORT, file_line("manifest.json", forged["manifest.json"]).sm3))
    assert await verdicts(report_api) == [(REPORT, "unchecked")]


async def test_a_pipe_or_a_link_in_a_night_is_told_at_once(report_api: FastAPI, grown_log: GrownLog, report_shelf: Path, tmp_path: Path):
    """Neither is read whatever the log says of the night, which is unchecked; a night that is a link is none."""
    await grown_log.add(report(REPORT, file_line("manifest.json", FILES["manifest.json"]).sm3))
    (report_shelf / "mlps.pdf").rename(tmp_path / "mlps.pdf")
    (report_shelf / "mlps.pdf").symlink_to(tmp_path / "mlps.pdf")
    assert await verdicts(report_api) == [(REPORT, "unchecked")]
    (report_shelf / "manifest.json").unlink()
    os.mkfifo(report_shelf / "manifest.json")
    async with asyncio.timeout(5):
        assert await verdicts(report_api) == [(REPORT, "unchecked")]
    shutil.move(report_shelf, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", report_shelf)  # noqa: PTH211
    assert await verdicts(report_api) == [(REPORT, "missing")]


async def test_without_the_log_the_shelf_is_told_as_it_is(report_shelf: Path):
    """An outage of the database hides no night."""

    async def down() -> dict[str, str | None]:
        raise DatabaseDown("PostgreSQL: gone")

    assert all_of(Shelf(report_shelf.parent), await made_or_none(down)) == [REPORT]


async def verdicts(report_api: FastAPI) -> list[tuple[str, str]]:
    """Report and verdict of each line."""
    return [(line["report"], line["verification"]["verdict"]) for line in (await get(report_api, "/reports")).json["reports"]]


def report(name: str, manifest_sm3: str) -> Entry:
    """The entry that a night was made."""
    files = [("manifest.json", manifest_sm3)]
    return report_made(recorded=MADE, operator="cli:m", report=name, period=DAY.period, zone=DAY.zone, files=files, count=1)


async def test_pages_follow_each_other(report_api: FastAPI, report_shelf: Path):
    """By `next`, each night comes once, the newest first."""
    for day in ("2026-11-27", "2026-11-28"):
        (report_shelf.parent / f"{day}-asia-shanghai-1").mkdir()
    first = (await get(report_api, "/reports?limit=2")).json
    rest = (await get(report_api, f"/reports?limit=2&cursor={first['next']}")).json
    assert [line["report"][:10] for line in first["reports"] + rest["reports"]] == ["2026-11-29", "2026-11-28", "2026-11-27"]
    assert rest["next"] is None


async def test_a_night_says_what_it_has(report_api: FastAPI):
    """The manifest as it is signed, and the names of all files that can be had."""
    told = (await get(report_api, f"/reports/{REPORT}")).json
    assert told["manifest"] == orjson.loads(FILES["manifest.json"])
    assert set(told["files"]) == set(FILES)


async def test_a_night_that_was_made_and_is_not_here_is_told_from_one_that_never_was(report_api: FastAPI, grown_log: GrownLog):
    """Both are not found; of the first the log's word and the way back are said, for the night and for its files."""
    gone = "2026-11-28-asia-shanghai-1"
    await grown_log.add(report(gone, "00" * 32))
    for target in (f"/reports/{gone}", f"/reports/{gone}/mlps.pdf"):
        reply = await get(report_api, target)
        assert (reply.status, reply.json["code"], reply.json["field"]) == (404, "no_such_report", "report")
        assert "was made, and it is not on this shelf" in reply.json["detail"]
    assert "none has the id" in (await get(report_api, "/reports/2026-11-27-asia-shanghai-1")).json["detail"]
    assert "none of that name" in (await get(report_api, f"/reports/{REPORT}/other.pdf")).json["detail"]


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ("/reports?tenant=a", "tenant"),
        ("/reports?limit=0", "limit"),
        ("/reports?limit=367", "limit"),
        ("/reports?cursor=x", "cursor"),
        (f"/reports/{REPORT}?limit=1", "limit"),
        (f"/reports/{REPORT}/mlps.pdf?download=1", "download"),
        ("/reports/" + "x" * 200, "report"),
    ],
)
async def test_parameters_are_those_of_the_route(report_api: FastAPI, target: str, field: str):
    """Another one, or another value, is refused by name."""
    reply = await get(report_api, target)
    assert (reply.status, reply.json["field"]) == (400, field)
