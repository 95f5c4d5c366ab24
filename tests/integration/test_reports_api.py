"""/reports over HTTP: what is there, whether it is as it was signed, and that each download is in the log."""

import shutil
from pathlib import Path
from typing import Annotated, Any

import orjson
import pytest
from fastapi import FastAPI, Header

from app.api.failures import install_failures
from app.api.reports import reports_router
from app.audit.intake.pending import Pending
from app.audit.reading.refusals import Refusals
from app.audit.records.entry import Entry
from app.audit.records.report import report_made
from app.auth.keys import Principal
from app.database import DatabaseDown
from app.observability.metrics import Metrics
from app.reports.checking.check import check
from app.reports.checking.shelved import checked_under
from app.reports.shelf.compared import all_of, made_or_none
from app.reports.shelf.made import manifests_of
from app.reports.shelf.shelf import Shelf
from app.reports.shelf.states import States
from app.transaction import Transactions
from tests.fixtures.asgi import Reply, call
from tests.fixtures.log import GrownLog
from tests.fixtures.making import DAY
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.signed_reports import CSV, Keys, file_line, night
from tests.fixtures.signing import MADE

REPORT = "2026-11-29-asia-shanghai-1"
KEYS = Keys.make()
FILES = night(KEYS)
ELSEWHERE = [
    f"/reports/{REPORT}/..%2f..%2fsecret",
    f"/reports/{REPORT}/%2e%2e/secret",
    f"/reports/{REPORT}/%2e%2e",
    f"/reports/{REPORT}/../../secret",
    f"/reports/{REPORT}/a%00b",
    f"/reports/{REPORT}/notes.txt",
    f"/reports/{REPORT}/link.csv",
    "/reports/%2e%2e/secret",
    "/reports/..%2fsecret/manifest.json",
    "/reports/2026-11-28-asia-shanghai-1/mlps.pdf",
    "/reports/2026-11-28-asia-shanghai-1",
]


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """One night that is signed by KEYS, beside what nobody may have."""
    folder = tmp_path / "shelf" / REPORT
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "notes.txt").write_text("mine")
    (tmp_path / "secret").write_text("secret")
    (folder / "link.csv").symlink_to(tmp_path / "secret")
    (tmp_path / "root.pem").write_text(KEYS.root.pem)
    (tmp_path / "root.pem").chmod(0o600)
    return folder


@pytest.fixture
def pending(grown_log: GrownLog) -> Pending:
    return Pending(grown_log.intake, grown_log.clock, Metrics())


@pytest.fixture
def api(grown_log: GrownLog, pending: Pending, shelf: Path) -> FastAPI:
    built = FastAPI()

    async def principal(x_role: Annotated[str, Header()] = "auditor") -> Principal:
        return Principal("id", f"{x_role}1", frozenset({x_role}), frozenset())

    install_failures(built)
    states = States(checked_under(shelf.parents[1] / "root.pem"))
    looks = Transactions(grown_log.engine, Metrics(), call="reports", timeout_ms=TIMEOUT_MS)
    refusals = Refusals(pending, grown_log.clock)
    built.include_router(
        reports_router(
            Shelf(shelf.parent),
            states,
            lambda: manifests_of(looks, grown_log.clock.utcnow()),
            grown_log.log,
            refusals=refusals,
            principal=principal,
        )
    )
    return built


async def get(api: FastAPI, target: str, **headers: str) -> Reply:
    return await call(api, "GET", target, **headers)


async def reads(grown_log: GrownLog) -> list[dict[str, Any]]:
    """All entries of the log, without what every entry has."""
    await grown_log.add()
    bodies = [orjson.loads(body) for (body,) in await grown_log.rows("SELECT body FROM audit.body ORDER BY seq")]
    return [{name: value for name, value in body.items() if name not in ("v", "id", "recorded", "tenant")} for body in bodies]


def read_of(file: str, operator: str = "auditor1", outcome: str = "done") -> dict[str, Any]:
    return {"kind": "log.read", "operator": operator, "outcome": outcome, "read": "report", "report": REPORT, "file": file}


async def test_nights_are_listed_with_their_state(api: FastAPI, grown_log: GrownLog, shelf: Path):
    """A night that is as it was signed is valid; with a byte changed it is tampered with, and the answer says where; without a root nobody knows."""
    (line,) = (await get(api, "/reports")).json["reports"]
    assert line["verification"] == {"verdict": "valid", "why": ""}
    assert (line["report"], line["day"], line["zone"], line["counts"]) == (REPORT, "2026-11-29", "Asia/Shanghai", {"entries": 7})

    (shelf / "decisions.csv").write_bytes(CSV.replace(b"7", b"8"))
    state = (await get(api, f"/reports/{REPORT}")).json["verification"]
    assert state["verdict"] == "tampered"
    assert "decisions.csv" in state["why"]

    (shelf / "decisions.csv").write_bytes(CSV)
    (shelf.parents[1] / "root.pem").unlink()
    (line,) = (await get(api, "/reports")).json["reports"]
    assert line["verification"]["verdict"] == "unchecked"
    assert await reads(grown_log) == []


async def test_a_night_whose_manifest_is_gone_is_listed_as_such(api: FastAPI, shelf: Path):
    """It says nothing of itself, and is not whole; the other nights are listed all the same."""
    (shelf / "manifest.json").unlink()
    (line,) = (await get(api, "/reports")).json["reports"]
    assert (line["report"], line["day"], line["counts"]) == (REPORT, None, None)
    assert line["verification"]["verdict"] != "valid"
    reply = await get(api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.json["code"]) == (422, "not_a_manifest")


@pytest.mark.parametrize(
    ("said", "instead"),
    [(b'"entries": 7', b'"entries": "7"'), (b'"day": "2026-11-29"', b'"day": 5'), (b'"name": "log.jsonl"', b'"name": 5')],
)
async def test_a_manifest_with_other_types_harms_no_list(api: FastAPI, shelf: Path, said: bytes, instead: bytes):
    """What somebody wrote into a manifest is told as such, and no answer fails over it."""
    (shelf / "manifest.json").write_bytes(FILES["manifest.json"].replace(said, instead))
    (line,) = (await get(api, "/reports")).json["reports"]
    assert (line["day"], line["verification"]["verdict"]) == (None, "tampered")
    assert (await get(api, f"/reports/{REPORT}")).status == 422


async def test_a_good_night_under_the_name_of_another_is_not_valid(api: FastAPI, shelf: Path):
    """A folder that was copied over another day is as it was signed, and not what its name says."""
    shutil.move(shelf, shelf.with_name("2026-11-28-asia-shanghai-1"))
    (line,) = (await get(api, "/reports")).json["reports"]
    assert (line["report"], line["verification"]["verdict"]) == ("2026-11-28-asia-shanghai-1", "tampered")
    assert REPORT in line["verification"]["why"]


async def test_what_the_log_says_was_made_is_listed_where_it_is_not_here(api: FastAPI, grown_log: GrownLog, shelf: Path):
    """A night that was deleted is missing; one that was exchanged for another that is signed, too, is tampered; the list asks no file."""
    manifests = {"2026-11-28-asia-shanghai-1": "00" * 32, REPORT: file_line("manifest.json", FILES["manifest.json"]).sm3}
    await grown_log.add(*(report(name, sm3) for name, sm3 in manifests.items()))
    assert await verdicts(api) == [(REPORT, "valid"), ("2026-11-28-asia-shanghai-1", "missing")]
    await grown_log.add(report(REPORT, "11" * 32))
    assert (await verdicts(api))[0] == (REPORT, "tampered")
    assert (await get(api, f"/reports/{REPORT}")).json["verification"]["verdict"] == "tampered"


async def test_without_the_log_the_shelf_is_told_as_it_is(shelf: Path):
    """An outage of the database hides no night."""

    async def down() -> dict[str, str | None]:
        raise DatabaseDown("PostgreSQL: gone")

    assert all_of(Shelf(shelf.parent), await made_or_none(down)) == [REPORT]


async def verdicts(api: FastAPI) -> list[tuple[str, str]]:
    """Report and verdict of each line."""
    return [(line["report"], line["verification"]["verdict"]) for line in (await get(api, "/reports")).json["reports"]]


def report(name: str, manifest_sm3: str) -> Entry:
    """The entry that a night was made."""
    files = [("manifest.json", manifest_sm3)]
    return report_made(recorded=MADE, operator="cli:m", report=name, period=DAY.period, zone=DAY.zone, files=files, count=1)


async def test_pages_follow_each_other(api: FastAPI, shelf: Path):
    """By `next`, each night comes once, the newest first."""
    for day in ("2026-11-27", "2026-11-28"):
        (shelf.parent / f"{day}-asia-shanghai-1").mkdir()
    first = (await get(api, "/reports?limit=2")).json
    rest = (await get(api, f"/reports?limit=2&cursor={first['next']}")).json
    assert [line["report"][:10] for line in first["reports"] + rest["reports"]] == ["2026-11-29", "2026-11-28", "2026-11-27"]
    assert rest["next"] is None


async def test_a_night_says_what_it_has(api: FastAPI):
    """The manifest as it is signed, and the names of all files that can be had."""
    told = (await get(api, f"/reports/{REPORT}")).json
    assert told["manifest"] == orjson.loads(FILES["manifest.json"])
    assert set(told["files"]) == set(FILES)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mlps.pdf", "application/pdf"),
        ("decisions.csv", "text/csv; charset=utf-8"),
        ("decisions.csv.p7s", "application/pkcs7-signature"),
        ("log.jsonl", "application/x-ndjson"),
        ("manifest.json", "application/json"),
        ("root.pem", "application/x-pem-file"),
        ("verify.sh", "text/x-shellscript; charset=utf-8"),
    ],
)
async def test_a_download_is_the_file_and_in_the_log(api: FastAPI, grown_log: GrownLog, name: str, kind: str):
    """Bytes, type and name are those of the file; the log says who took which."""
    reply = await get(api, f"/reports/{REPORT}/{name}")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, FILES[name], kind)
    assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert reply.headers["sluice-report-state"] == "valid"
    assert await reads(grown_log) == [read_of(name)]


async def test_a_night_that_was_downloaded_can_be_checked(api: FastAPI, tmp_path: Path):
    """Under the names that the answers give, in one folder, it is as good as on the shelf."""
    for name in (await get(api, f"/reports/{REPORT}")).json["files"]:
        reply = await get(api, f"/reports/{REPORT}/{name}")
        (tmp_path / reply.headers["content-disposition"].split('"')[1]).write_bytes(reply.body)
    assert check(tmp_path, KEYS.root).verdict == "valid"


async def test_a_file_of_a_night_that_is_not_whole_says_so(api: FastAPI, grown_log: GrownLog, shelf: Path):
    """It is handed out, with what checking its night says, and the download is in the log all the same."""
    (shelf / "gdpr.pdf").write_bytes(FILES["gdpr.pdf"] + b"\n")
    reply = await get(api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.headers["sluice-report-state"]) == (200, "tampered")
    assert await reads(grown_log) == [read_of("mlps.pdf")]
    look = await call(api, "HEAD", f"/reports/{REPORT}/gdpr.pdf")
    assert (look.status, look.headers["sluice-report-state"]) == (200, "tampered")


async def test_a_night_that_was_made_and_is_not_here_is_told_from_one_that_never_was(api: FastAPI, grown_log: GrownLog):
    """Both are not found; of the first the log's word and the way back are said, for the night and for its files."""
    gone = "2026-11-28-asia-shanghai-1"
    await grown_log.add(report(gone, "00" * 32))
    for target in (f"/reports/{gone}", f"/reports/{gone}/mlps.pdf"):
        reply = await get(api, target)
        assert (reply.status, reply.json["code"], reply.json["field"]) == (404, "no_such_report", "report")
        assert "was made, and it is not on this shelf" in reply.json["detail"]
    assert "none has the id" in (await get(api, "/reports/2026-11-27-asia-shanghai-1")).json["detail"]
    assert "none of that name" in (await get(api, f"/reports/{REPORT}/other.pdf")).json["detail"]


async def test_a_look_at_a_file_is_no_read(api: FastAPI, grown_log: GrownLog):
    """HEAD tells length and digest, gives nothing, and leaves no entry."""
    reply = await call(api, "HEAD", f"/reports/{REPORT}/decisions.csv")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", str(len(CSV)))
    assert reply.headers["etag"] == f'"sm3-{file_line("decisions.csv", CSV).sm3}"'
    assert await reads(grown_log) == []


async def test_nothing_leaves_that_the_log_does_not_have(api: FastAPI, grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """Where the entry cannot be written the file is refused."""

    async def down(*_: object) -> None:
        raise DatabaseDown("PostgreSQL: gone")

    monkeypatch.setattr(grown_log.intake, "write", down)
    reply = await get(api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.json["code"]) == (503, "audit_unavailable")
    assert (await get(api, f"/reports/{REPORT}")).status == 200


@pytest.mark.parametrize("role", ["gateway", "operator"])
async def test_who_may_not_read_is_refused_and_told_to_the_log(api: FastAPI, grown_log: GrownLog, pending: Pending, role: str):
    """Reports are for auditors and admins; an attempt at a file is an entry, what no report can be called is not repeated in it."""
    for target in ("/reports", f"/reports/{REPORT}", f"/reports/{REPORT}/mlps.pdf", "/reports/no%20report/mlps.pdf"):
        assert (await get(api, target, x_role=role)).status == 403
    await pending.flush()
    refused = [entry for entry in await reads(grown_log) if entry["kind"] == "log.read"]
    nameless = {name: value for name, value in read_of("mlps.pdf", f"{role}1", "refused").items() if name != "report"}
    assert refused == [read_of("mlps.pdf", f"{role}1", "refused"), nameless]


async def test_an_admin_may_read(api: FastAPI):
    """As the auditor may."""
    assert (await get(api, f"/reports/{REPORT}/mlps.pdf", x_role="admin")).status == 200


@pytest.mark.parametrize("target", ELSEWHERE)
async def test_nothing_else_is_reached(api: FastAPI, grown_log: GrownLog, target: str):
    """Not by dots or slashes, encoded or not, not by NUL, a link, or a name that the manifest does not have."""
    reply = await get(api, target)
    assert reply.status == 404, reply.body
    assert b"secret" not in reply.body.replace(b"/secret", b"")
    assert await reads(grown_log) == []


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
async def test_parameters_are_those_of_the_route(api: FastAPI, target: str, field: str):
    """Another one, or another value, is refused by name."""
    reply = await get(api, target)
    assert (reply.status, reply.json["field"]) == (400, field)
