"""`sluice audit export`, `proof` and `verify` on a real PostgreSQL."""

import asyncio
import json
import logging
import os
import pwd
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
import structlog
from typer.testing import CliRunner, Result

from app.audit.format.export_file import read_header
from app.audit.format.merkle import covering
from app.audit.reading.entries import NotInLog
from app.audit.reading.log import AuditUnavailable
from app.audit.verification.report import NotChecked
from app.cli.audit import app
from app.database import DatabaseUrls
from app.errors import BadRequest, ConfigError
from app.instants import rfc3339
from tests.fixtures.log import GrownLog
from tests.fixtures.signing import MADE
from tests.fixtures.verifiers import SCRIPT

Sluice = Callable[..., Awaitable[Result]]


@pytest.fixture
def audit(database_urls: DatabaseUrls, tmp_path: Path) -> Iterator[Sluice]:
    """Runs `sluice audit …` with a settings file for the test's database; errors are raised, as main() shows them."""
    settings = tmp_path / "sluice.yaml"
    names = {"registry": "url", "owner": "owner_url", "intake": "intake_url", "log": "log_url"}
    settings.write_text(json.dumps({"database": {name: getattr(database_urls, role) for role, name in names.items()}}))

    async def run(command: str, *arguments: object) -> Result:
        config = () if command == "verify" else ("--config", str(settings))
        result = await asyncio.to_thread(CliRunner().invoke, app, [command, *map(str, arguments), *config])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    handlers = logging.getLogger().handlers[:]
    yield run
    logging.getLogger().handlers[:] = handlers  # the command's own write to streams that are closed by now
    structlog.reset_defaults()


@pytest.fixture
def root(grown_log: GrownLog, tmp_path: Path) -> Path:
    """The root certificate as an auditor has it."""
    path = tmp_path / "root.pem"
    path.write_text(grown_log.keys.root.pem)
    return path


async def reads(grown_log: GrownLog) -> list[tuple[str, str, int]]:
    """Who read what, and how many entries."""
    await grown_log.add()
    bodies = [orjson.loads(body) for (body,) in await grown_log.rows("SELECT body FROM audit.body WHERE kind = 'log.read' ORDER BY seq")]
    return [(body["operator"], body["read"], body["count"]) for body in bodies]


def names(folder: Path, pattern: str) -> list[str]:
    """What a folder holds."""
    return [path.name for path in folder.glob(pattern)]


async def test_an_export_is_written_and_verified(grown_log: GrownLog, audit: Sluice, root: Path, tmp_path: Path):
    """The file is for its owner alone, whole for the verifier, and the log says which user wrote it."""
    await grown_log.grow(300)
    await grown_log.sign()
    out = tmp_path / "log.jsonl"
    written = await audit("export", "--out", out)
    verified = await audit("verify", "--export", out, "--root", root)

    assert (written.exit_code, verified.exit_code) == (0, 0), (written.output, verified.output)
    assert written.stderr == f"{out}: entries 0 to 299 of 300 under the newest checkpoint\n"
    assert (out.stat().st_mode & 0o777, names(tmp_path, "log*")) == (0o600, ["log.jsonl"])
    assert await reads(grown_log) == [(f"cli:{pwd.getpwuid(os.getuid()).pw_name}", "export", 300)]


@pytest.mark.parametrize(("command", "starts"), [(["export"], b'{"sluice_audit_export":1,'), (["proof", "1"], b"sluice-audit-proof 1\n")])
@pytest.mark.usefixtures("audit")
async def test_a_file_goes_to_standard_output(command: list[str], starts: bytes, grown_log: GrownLog, tmp_path: Path):
    """`--out -` is standard output, as `--export -` is standard input; nobody who reads to the end is told so, without a traceback."""
    await grown_log.grow(3)
    await grown_log.sign()
    program = "import sys; from app.cli import main; main()"
    argv = [sys.executable, "-c", program, "audit", *command, "--out", "-", "--config", str(tmp_path / "sluice.yaml")]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, check=False)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        unread = await asyncio.to_thread(subprocess.run, argv, stdout=closed, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stdout.startswith(starts), done.stdout.endswith(b"\n")) == (0, True, True), done.stderr
    assert (unread.returncode, b"--out -: Broken pipe" in unread.stderr, b"Exception" in unread.stderr) == (2, True, False), unread.stderr
    assert names(Path(), "-") == []


async def test_a_period_is_exported_with_what_proves_an_anchor(grown_log: GrownLog, audit: Sluice, root: Path, tmp_path: Path):
    """--from and --to bound the file, and --anchor puts proofs for checkpoints kept elsewhere into it."""
    for _ in range(3):
        await grown_log.grow(10)
        await grown_log.sign()
        grown_log.clock.advance(86_400_000)
    notes = [note for (note,) in await grown_log.rows("SELECT note FROM audit.checkpoint ORDER BY size")]
    anchors, out = tmp_path / "anchors.txt", tmp_path / "log.jsonl"
    anchors.write_text("\n".join(notes))
    period = [rfc3339(MADE + timedelta(days=day)) for day in (1, 2)]
    await audit("export", "--from", period[0], "--to", period[1], "--anchor", anchors, "--out", out)
    header = read_header(out.read_bytes().splitlines(keepends=True)[0])
    verified = await audit("verify", "--export", out, "--root", root, "--anchor", anchors, "--output", "json")

    assert (header.first, header.end, header.size, len(header.left)) == (10, 20, 30, len(list(covering(0, 10))))
    assert (verified.exit_code, json.loads(verified.stdout)["anchors"]) == (0, 3)


async def test_a_proof_is_written_as_text(grown_log: GrownLog, audit: Sluice, root: Path, tmp_path: Path):
    """The file is what the route answers as text/plain, the script takes it, and the log says who read which entry."""
    await grown_log.grow(5)
    await grown_log.sign()
    await audit("proof", 3, "--out", tmp_path / "proof.txt")
    proof = await grown_log.log.inclusion(3, 5, operator="auditor")

    checked = subprocess.run([SCRIPT, tmp_path / "proof.txt", root], capture_output=True, text=True, check=False)  # noqa: ASYNC221 - short
    assert (tmp_path / "proof.txt").read_text() == proof.file
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert [(what, count) for _, what, count in await reads(grown_log)] == [("proof", 1), ("proof", 1)]


async def test_a_purged_entry_is_proven_too(grown_log: GrownLog, audit: Sluice, root: Path, tmp_path: Path):
    """The script takes the proof of an entry whose body went, and prints its leaf alone."""
    await grown_log.grow(5)
    await grown_log.sign()
    await grown_log.damage("DELETE FROM audit.body WHERE seq = 3")
    await audit("proof", 3, "--out", tmp_path / "proof.txt")

    checked = subprocess.run([SCRIPT, tmp_path / "proof.txt", root], capture_output=True, text=True, check=False)  # noqa: ASYNC221 - short
    leaf = (await grown_log.log.inclusion(3, 5, operator="auditor")).entry.leaf
    assert (checked.returncode, checked.stdout) == (0, f"{leaf.text.decode()}\nOK\n")


async def test_what_fails_leaves_the_file_that_was_there(grown_log: GrownLog, audit: Sluice, tmp_path: Path):
    """An entry that is not there, an unrecorded read, a wrong period and an unreadable anchor each say so; an older file stays as it was."""
    await grown_log.grow(2)
    await grown_log.sign()
    out, missing = tmp_path / "file", tmp_path / "missing"
    out.write_text("older")
    with pytest.raises(NotInLog):
        await audit("proof", 2, "--out", out)
    with pytest.raises(BadRequest, match="--from"):
        await audit("export", "--from", "yesterday", "--out", out)
    with pytest.raises(BadRequest, match="to: must be later"):
        await audit("export", "--from", "2026-02-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z", "--out", out)
    with pytest.raises(NotChecked, match="--anchor"):
        await audit("export", "--anchor", missing, "--out", out)
    with pytest.raises(ConfigError, match="there is no folder"):
        await audit("export", "--out", out / "below")
    with pytest.raises(ConfigError, match="there is no folder"):
        await audit("proof", 1, "--out", tmp_path / "nowhere" / "proof.txt")
    await grown_log.superuser.execute("ALTER ROLE sluice_intake NOLOGIN")
    try:
        with pytest.raises(AuditUnavailable):
            await audit("export", "--out", out)
    finally:
        await grown_log.superuser.execute("ALTER ROLE sluice_intake LOGIN")

    assert out.read_text() == "older"
    assert names(tmp_path, "file*") == ["file"]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", [["export"], ["proof", 0]])
async def test_only_a_plain_file_is_replaced(command: list[object], audit: Sluice, tmp_path: Path):
    """A device, a pipe, a folder or what a link names stays what it is: the file takes its name, so it would be gone."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link", "."):
        with pytest.raises(ConfigError, match=r"--out: .* is no plain file"):
            await audit(*command, "--out", tmp_path / name)

    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
