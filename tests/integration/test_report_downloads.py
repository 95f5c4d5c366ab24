"""Files of nights over HTTP: each download is the file, and in the log before it leaves; nothing else can be had."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.audit.intake.pending import Pending
from app.database import DatabaseDown
from app.reports.checking.check import check
from tests.fixtures.asgi import call
from tests.fixtures.log import GrownLog
from tests.fixtures.reports_api import FILES, KEYS, REPORT, get, read_of, reads
from tests.fixtures.signed_reports import CSV, file_line

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
async def test_a_download_is_the_file_and_in_the_log(report_api: FastAPI, grown_log: GrownLog, name: str, kind: str):
    """Bytes, type and name are those of the file; the log says who took which."""
    reply = await get(report_api, f"/reports/{REPORT}/{name}")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, FILES[name], kind)
    assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert reply.headers.get("sluice-report-state") == (None if name in ("root.pem", "verify.sh") else "valid")  # nothing vouches for these
    assert await reads(grown_log) == [read_of(name)]


async def test_a_night_that_was_downloaded_can_be_checked(report_api: FastAPI, tmp_path: Path):
    """Under the names that the answers give, in one folder, it is as good as on the shelf."""
    for name in (await get(report_api, f"/reports/{REPORT}")).json["files"]:
        reply = await get(report_api, f"/reports/{REPORT}/{name}")
        (tmp_path / reply.headers["content-disposition"].split('"')[1]).write_bytes(reply.body)
    assert check(tmp_path, KEYS.root).verdict == "valid"


async def test_a_file_of_a_night_that_is_not_whole_says_so(report_api: FastAPI, grown_log: GrownLog, report_shelf: Path):
    """It is handed out, with what checking its night says, and the download is in the log all the same."""
    (report_shelf / "gdpr.pdf").write_bytes(FILES["gdpr.pdf"] + b"\n")
    reply = await get(report_api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.headers["sluice-report-state"]) == (200, "tampered")
    assert await reads(grown_log) == [read_of("mlps.pdf")]
    look = await call(report_api, "HEAD", f"/reports/{REPORT}/gdpr.pdf")
    assert (look.status, look.headers["sluice-report-state"]) == (200, "tampered")


async def test_a_look_at_a_file_is_no_read(report_api: FastAPI, grown_log: GrownLog):
    """HEAD tells length and digest, gives nothing, and leaves no entry."""
    reply = await call(report_api, "HEAD", f"/reports/{REPORT}/decisions.csv")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", str(len(CSV)))
    assert reply.headers["etag"] == f'"sm3-{file_line("decisions.csv", CSV).sm3}"'
    assert await reads(grown_log) == []


async def test_nothing_leaves_that_the_log_does_not_have(report_api: FastAPI, grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """Where the entry cannot be written the file is refused."""

    async def down(*_: object) -> None:
        raise DatabaseDown("PostgreSQL: gone")

    monkeypatch.setattr(grown_log.intake, "write", down)
    reply = await get(report_api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.json["code"]) == (503, "audit_unavailable")
    assert (await get(report_api, f"/reports/{REPORT}")).status == 200


@pytest.mark.parametrize("kind", ["pipe", "link", "file", "nothing"])
async def test_what_takes_the_name_of_a_file_at_the_last_moment_does_not_leave(
    report_api: FastAPI, grown_log: GrownLog, report_shelf: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Who may write to the shelf hands out no other file by it, and keeps no thread waiting."""
    write, file, other = grown_log.intake.write, report_shelf / "mlps.pdf", report_shelf.parents[1] / "secret"

    async def and_exchange(*entries: Any) -> Any:
        file.unlink()
        match kind:
            case "pipe":
                os.mkfifo(file)
            case "link":
                file.symlink_to(other)
            case "file":
                other.rename(file)
            case _:
                pass
        return await write(*entries)

    monkeypatch.setattr(grown_log.intake, "write", and_exchange)
    async with asyncio.timeout(5):
        reply = await get(report_api, f"/reports/{REPORT}/mlps.pdf")
    assert (reply.status, reply.json["code"]) == (404, "no_such_report")


@pytest.mark.parametrize("role", ["gateway", "operator"])
async def test_who_may_not_read_is_refused_and_told_to_the_log(
    report_api: FastAPI, grown_log: GrownLog, report_pending: Pending, role: str
):
    """Reports are for auditors and admins; an attempt at a file is an entry, what no report can be called is not repeated in it."""
    for target in ("/reports", f"/reports/{REPORT}", f"/reports/{REPORT}/mlps.pdf", "/reports/no%20report/mlps.pdf"):
        assert (await get(report_api, target, x_role=role)).status == 403
    await report_pending.flush()
    refused = [entry for entry in await reads(grown_log) if entry["kind"] == "log.read"]
    nameless = {name: value for name, value in read_of("mlps.pdf", f"{role}1", "refused").items() if name != "report"}
    assert refused == [read_of("mlps.pdf", f"{role}1", "refused"), nameless]


async def test_an_admin_may_read(report_api: FastAPI):
    """As the auditor may."""
    assert (await get(report_api, f"/reports/{REPORT}/mlps.pdf", x_role="admin")).status == 200


@pytest.mark.parametrize("target", ELSEWHERE)
async def test_nothing_else_is_reached(report_api: FastAPI, grown_log: GrownLog, target: str):
    """Not by dots or slashes, encoded or not, not by NUL, a link, or a name that the manifest does not have."""
    reply = await get(report_api, target)
    assert reply.status == 404, reply.body
    assert b"secret" not in reply.body.replace(b"/secret", b"")
    assert await reads(grown_log) == []
