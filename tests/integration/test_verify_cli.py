"""`sluice audit verify` as an auditor runs it: on a machine with nothing of ours but the program, the file and the root."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.instants import rfc3339
from tests.fixtures.log_file import BEGAN, LOG, Authority, Log, body

AUTHORITY = Authority.make()
WHOLE = Log.of(6, AUTHORITY)
PROGRAM = "import sys; from app.cli import main; main()"
REPOSITORY = Path(__file__).resolve().parents[2]

Verify = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def verify(tmp_path: Path) -> Verify:
    """Runs the command in an empty folder, with no environment but what is given, and nobody to ask."""
    for name, content in {
        "root.pem": AUTHORITY.root.pem.encode(),
        "root.der": AUTHORITY.root.der,
        "signer.pem": AUTHORITY.signer.pem.encode(),
        "whole": b"".join(WHOLE.export()),
        "anchor": f"# kept on 2026-11-30\n{WHOLE.note(2)}\n{WHOLE.note(6)}".encode(),
        "json": b'{"note": ""}',
        "empty": b"",
        "two.pem": f"{AUTHORITY.root.pem}{AUTHORITY.signer.pem}".encode(),
        "mailed": b"".join(WHOLE.export()).replace(b"\n", b"\r\n"),
    }.items():
        (tmp_path / name).write_bytes(content)

    def run(*arguments: str, stdin: bytes = b"", **environment: str) -> "subprocess.CompletedProcess[bytes]":
        argv = [sys.executable, "-P", "-c", PROGRAM, "audit", "verify", *arguments]
        env = {"PYTHONPATH": str(REPOSITORY)} | environment
        return subprocess.run(argv, cwd=tmp_path, env=env, input=stdin, capture_output=True, check=False)

    return run


@pytest.mark.parametrize("root", ["root.pem", "root.der"])
def test_a_whole_log_exits_with_0(verify: Verify, root: str):
    """A whole export is told so, with its count, the time that it covers, size, root and anchors."""
    done = verify("--export", "whole", "--root", root, "--anchor", "anchor")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == [
        "whole",
        f"  log          sluice/{LOG}",
        "  entries      0 to 5: 6 with their bodies, 0 purged",
        f"  recorded     {rfc3339(BEGAN)} to {rfc3339(BEGAN + timedelta(seconds=5))}",
        "  checkpoints  2 good",
        "  anchors      2 good",
        f"  newest       size 6, root {WHOLE.root(0, 6).hex()}",
    ]


def test_a_tampered_log_exits_with_4_and_names_each_entry(verify: Verify):
    """From standard input too, each altered entry is told, as text and as JSON."""
    export = b"".join(WHOLE.export()).replace(b'"operator":"olivia"', b'"operator":"mallet"', 2)
    done = verify("--export", "-", "--root", "root.pem", stdin=export)
    told = verify("--export", "-", "--root", "root.pem", "--output", "json", stdin=export)

    assert (done.returncode, told.returncode) == (4, 4)
    assert done.stdout.decode().splitlines()[0] == "tampered"
    assert [line.split(":")[0] for line in done.stdout.decode().splitlines()[7:]] == ["tampered   entry 0", "tampered   entry 1"]
    report = json.loads(told.stdout)
    assert report["verdict"] == "tampered"
    assert [(finding["what"], finding["seq"]) for finding in report["findings"]] == [("entry", 0), ("entry", 1)]


def test_an_old_tree_exits_with_4(verify: Verify, tmp_path: Path):
    """An export from before the newest anchor shows that its end was taken off."""
    (tmp_path / "old").write_bytes(b"".join(WHOLE.export(size=4)))

    assert verify("--export", "old", "--root", "root.pem").returncode == 0
    assert verify("--export", "old", "--root", "root.pem", "--anchor", "anchor").returncode == 4


def test_a_gap_exits_with_7(verify: Verify):
    """A log that says that records were lost is not whole."""
    log = replace(WHOLE, bodies=(*WHOLE.bodies, ("d400", body(6, "audit.gap", lost=5))))
    done = verify("--export", "-", "--root", "root.pem", stdin=b"".join(log.export()))

    assert done.returncode == 7
    assert "gap        entry 6: 5 records were lost" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--export", "missing", "--root", "root.pem"], "missing: No such file or directory"),
        (["--export", ".", "--root", "root.pem"], "Is a directory"),
        (["--export", "whole", "--root", "missing"], "--root: missing: No such file or directory"),
        (["--export", "whole", "--root", "whole"], "--root: whole: not a certificate in DER"),
        (["--export", "whole", "--root", "signer.pem"], "is no root"),
        (["--export", "whole", "--root", "root.pem", "--anchor", "missing"], "missing: No such file or directory"),
        (["--export", "whole", "--root", "root.pem", "--anchor", "root.pem"], "root.pem: no checkpoint"),
        (["--export", "whole", "--root", "root.pem", "--anchor", "root.der"], "root.der: no text of checkpoints"),
        (["--export", "root.pem", "--root", "root.pem"], "does not begin like an export"),
        (["--export", "-", "--root", "root.pem"], "the file is empty"),
        (["--export", "empty", "--root", "root.pem"], "the file is empty"),
        (["--export", "mailed", "--root", "root.pem"], "line ends were changed on the way (CRLF): fetch it again as a file"),
        (["--export", "whole", "--root", "empty"], "--root: empty: the file is empty"),
        (["--export", "whole", "--root", "two.pem"], "name one certificate"),
        (["--export", "whole", "--root", "root.pem", "--anchor", "empty"], "empty: the file is empty"),
        (["--export", "whole", "--root", "root.pem", "--anchor", "json"], "Accept: text/plain"),
    ],
)
def test_what_could_not_be_checked_exits_with_6(verify: Verify, arguments: list[str], said: str):
    """A file, certificate or anchor that is missing or another is named, and nothing is claimed."""
    done = verify(*arguments)

    assert done.returncode == 6
    assert said in (done.stdout + done.stderr).decode()
    assert b"Traceback" not in done.stderr


def test_a_machine_without_sm2_exits_with_6(verify: Verify):
    """Where OpenSSL lacks SM2, that is said with the remedy."""
    done = verify("--export", "whole", "--root", "root.pem", SLUICE_LIBCRYPTO="/nonexistent.so")

    assert done.returncode == 6
    assert b"SLUICE_LIBCRYPTO" in done.stderr


def test_a_file_does_not_steer_the_terminal(verify: Verify):
    """Control characters in what a file says are shown, not sent."""
    export = WHOLE.export()
    export[0] = replace(WHOLE.header(), log="sluice/\x1b[31m\u202e").line()
    done = verify("--export", "-", "--root", "root.pem", stdin=b"".join(export))

    assert done.returncode == 4
    assert "sluice/\\u001b[31m\\u202e" in done.stdout.decode()
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(("file", "status"), [("whole", 0), ("old", 4)])
@pytest.mark.usefixtures("verify")
def test_a_report_that_nobody_reads_on_keeps_its_verdict(tmp_path: Path, file: str, status: int):
    """A pipe that is closed, as by head, is no fault: the exit status is that of the verdict, and nothing is complained of."""
    (tmp_path / "old").write_bytes(b"".join(WHOLE.export(size=4)))
    argv = [sys.executable, "-P", "-c", PROGRAM, "audit", "verify", "--export", file, "--root", "root.pem", "--anchor", "anchor"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(argv, cwd=tmp_path, env={"PYTHONPATH": str(REPOSITORY)}, stdout=closed, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (status, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.usefixtures("verify")
def test_a_report_that_cannot_be_written_is_no_answer(tmp_path: Path, output: str):
    """Where the answer is lost on a full disk, the exit status says that nothing was checked."""
    argv = [sys.executable, "-P", "-c", PROGRAM, "audit", "verify", "--export", "whole", "--root", "root.pem", "--output", output]
    with Path("/dev/full").open("wb") as full:
        env = {"PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(argv, cwd=tmp_path, env=env, stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 6
    assert b"the report could not be written" in done.stderr
    assert b"Traceback" not in done.stderr
