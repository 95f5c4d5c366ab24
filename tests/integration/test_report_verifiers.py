"""The programs that check reports and share no code say the same of the same files, and of each change."""

import json
import os
import random
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from app.reports.checking.check import check
from app.reports.checking.result import Result
from app.reports.checking.text import lines
from app.signing.certificates import Certificate
from tests.fixtures.report_cases import ReportCase, report_cases
from tests.fixtures.report_verifiers import STATUS, Said, all_say, run_script
from tests.fixtures.signed_reports import Keys, beside, flipped, night
from tests.fixtures.verifiers import KEPT, PROGRAM

CASES = {case.name: case for case in report_cases()}
PDF, CSV, NIGHT = CASES["pdf as it was signed"], CASES["csv as it was signed"], CASES["night as it was signed"]
BOTH = CASES["pdf with a PAdES signature below"]
FLIPS = 6


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """An empty folder for what is checked; roots lie elsewhere."""
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_all_say_the_same(case: ReportCase, files: Path, tmp_path: Path):
    """Each case of the table has its exit status and its cause, whoever checks it."""
    expected = Said(STATUS[case.verdict], case.cause)

    assert all_say(case.written_to(files), case.root, tmp_path) == (expected, expected, expected)


@pytest.mark.parametrize(("case", "name"), [(BOTH, "mlps.pdf"), (CSV, "decisions.csv"), (CSV, "decisions.csv.p7s")])
def test_no_bit_may_change(case: ReportCase, name: str, files: Path, tmp_path: Path):
    """Whatever bit of a report or its signature is another, nobody takes it; half of those of a PDF lie in the hole of its signature."""
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    good, path = case.files[name], case.written_to(files)
    hole = good.rfind(b"/Contents <"), good.rfind(b">\n/ByteRange")
    for flip in range(FLIPS):
        where = draw.randrange(*hole) if hole[0] > 0 and flip % 2 else draw.randrange(len(good))
        (files / name).write_bytes(flipped(good, where, draw.randrange(8)))
        assert {said.status for said in all_say(path, case.root, tmp_path)} == {STATUS["tampered"]}, f"byte {where}, seed {seed}"


@pytest.mark.parametrize(
    "case", [BOTH, NIGHT, CASES["pdf with a PAdES signature alone"], CASES["night without a PDF"]], ids=lambda case: case.name
)
def test_the_program_writes_the_same_json(case: ReportCase, files: Path, tmp_path: Path):
    """The Go program's JSON has our fields with our values; only the sentences for people are its own."""
    path, root = case.written_to(files), tmp_path / "root.pem"
    root.write_bytes(case.root)
    ran = subprocess.run([PROGRAM, "--report", path, "--root", root, "--output", "json"], capture_output=True, check=False)
    said, result = json.loads(ran.stdout), check(path, Certificate.load_pem(case.root))

    def compared(one: Result, theirs: dict[str, object]) -> None:
        assert set(theirs) == {field.name for field in fields(Result)}
        for name in ("file", "verdict", "cause", "signer", "fingerprint", "signed_at", "covers", "report"):
            assert theirs[name] == getattr(one, name), name
        assert theirs["others"] == list(one.others)

    compared(result, said)
    for one, theirs in zip(result.files, said["files"], strict=True):
        compared(one, theirs)


def test_all_name_each_bad_file_of_a_night(files: Path, tmp_path: Path):
    """Who changed one file and took away another is told both by all three, in the same words, and that the manifest is good."""
    NIGHT.written_to(files)
    (files / "gdpr.pdf").write_bytes(flipped(NIGHT.files["gdpr.pdf"], 100))
    (files / "log.jsonl").unlink()
    root = tmp_path / "root.pem"
    root.write_bytes(NIGHT.root)
    program = subprocess.run([PROGRAM, "--report", files, "--root", root], capture_output=True, check=False, text=True).stdout
    ours = "\n".join(lines(check(files, Certificate.load_pem(NIGHT.root))))

    for said in (ours, program, run_script(str(files), str(root)).stdout):
        told = [line.strip() for line in said.splitlines()]
        assert told[0] == "tampered  2026-11-29-asia-shanghai-1: digest: not all files are valid: gdpr.pdf (digest), log.jsonl (missing)"
        assert [":".join(line.split(":")[:2]) for line in told[1:] if line.startswith(tuple(STATUS))] == [
            "valid  manifest.json",
            "valid  mlps.pdf",
            "tampered  gdpr.pdf: digest",
            "valid  decisions.csv",
            "tampered  log.jsonl: missing",
        ]


def test_a_report_that_another_library_signed_is_good(tmp_path: Path):
    """A signature and certificates that the Go library made are good for all three."""
    assert all_say(KEPT / "report.pdf", (KEPT / "root.pem").read_bytes(), tmp_path) == (Said(0), Said(0), Said(0))


def test_a_manifest_has_one_spelling(files: Path, tmp_path: Path):
    """A manifest that is signed well, and written so that two readers could read it differently, is not gone by."""
    keys = Keys.make()
    text = night(keys)["manifest.json"]
    for other in (
        text.replace(b'"files"', b' "files"'),
        text.replace(b"{\n", b'{\n  "files": [],\n', 1),
        text[:-1],
        text.replace(b"\n", b"\r\n"),
    ):
        (files / "manifest.json").write_bytes(other)
        (files / "manifest.json.p7s").write_bytes(beside(keys, other))
        assert set(all_say(files, keys.root.pem.encode(), tmp_path)) == {Said(STATUS["unchecked"], "unreadable")}


def test_a_signature_that_leads_nowhere_is_none(files: Path, tmp_path: Path):
    """A link in the place of a signature is not taken for a file without one."""
    path = NIGHT.written_to(files)
    (files / "decisions.csv.p7s").unlink()
    (files / "decisions.csv.p7s").symlink_to("nowhere")
    assert set(all_say(path, NIGHT.root, tmp_path)) == {Said(STATUS["tampered"], "unsigned")}


def test_a_file_without_a_name_before_its_end_is_no_pdf(files: Path, tmp_path: Path):
    """`.pdf` alone is a hidden file of any kind."""
    (files / ".pdf").write_bytes(CSV.files["decisions.csv"])
    (files / ".pdf.p7s").write_bytes(CSV.files["decisions.csv.p7s"])
    assert all_say(files / ".pdf", CSV.root, tmp_path) == (Said(0), Said(0), Said(0))


def test_a_folder_is_told_file_by_file(files: Path, tmp_path: Path):
    """The script names each file of a night, and what lies there that nobody vouches for."""
    case = CASES["night with a file that nobody named"]
    (tmp_path / "root.pem").write_bytes(case.root)
    case.written_to(files)
    (files / "mlps.pdf gdpr.pdf").touch()
    (files / ".hidden\nmlps.pdf").touch()
    ran = run_script(str(files) + "/", str(tmp_path / "root.pem"))

    assert ran.returncode == 0, ran.stderr
    for line in [
        "valid  2026-11-29-asia-shanghai-1",
        "valid  manifest.json",
        *(f"valid  {name}" for name in ("mlps.pdf", "gdpr.pdf", "decisions.csv", "log.jsonl")),
    ]:
        assert f"{line}\n" in ran.stdout
    remarks = {line for line in ran.stdout.splitlines() if line.startswith("remark")}
    assert remarks == {
        f"remark  {name} is not named by the manifest: not judged" for name in ("notes.txt", "mlps.pdf gdpr.pdf", ".hidden?mlps.pdf")
    }


@pytest.mark.parametrize("name", ["-n", "a=b", "a b\n", "x;touch made;$(touch made)`touch made`", "*", "地址", "%s\\101"])
def test_the_script_takes_files_of_any_name(name: str, files: Path):
    """A file is read under whatever name it has: none is an option, an assignment of awk, a pattern, or a command."""
    (files / name).write_bytes(CSV.files["decisions.csv"])
    (files / f"{name}.p7s").write_bytes(CSV.files["decisions.csv.p7s"])
    (files / f"{name}.root").write_bytes(CSV.root)
    ran = run_script(name, f"{name}.root", cwd=files)

    assert ran.returncode == 0, ran.stderr
    assert not (files / "made").exists()


def test_a_root_may_be_written_otherwise(files: Path, tmp_path: Path):
    """A root is taken as DER, and as PEM that went through a mail program."""
    path = CSV.written_to(files)
    for root in (Certificate.load_pem(CSV.root).der, CSV.root.replace(b"\n", b"\r\n")):
        (tmp_path / "root").write_bytes(root)
        assert run_script(str(path), str(tmp_path / "root")).returncode == 0
        assert subprocess.run([PROGRAM, "--report", path, "--root", tmp_path / "root"], capture_output=True, check=False).returncode == 0


def test_the_script_says_what_it_lacks(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a root, or with an openssl that has no SM2, nothing was checked, and the reason is said."""
    path, signer = str(CSV.written_to(files)), tmp_path / "roots"
    roots = {"empty": b"", "two": CSV.root * 2, "text": b"root", "cut": CSV.root[:200], "garbage": CSV.root.replace(b"M", b"N")}
    signer.mkdir()
    for name, content in roots.items():
        (signer / name).write_bytes(content)

    assert run_script().returncode == run_script(path).returncode == 2
    for name, why in [
        ("none", "no file"),
        ("empty", "is empty"),
        ("two", "name one certificate"),
        *((n, "no certificate") for n in ("text", "cut", "garbage")),
    ]:
        ran = run_script(path, str(signer / name))
        assert (ran.returncode, ran.stdout, why in ran.stderr) == (STATUS["unchecked"], "", True), ran.stderr
    old = tmp_path / "openssl"
    old.write_text(f'#!/bin/sh\ncase $* in *-verify*) echo "no SM2" >&2; exit 1 ;; *) exec {shutil.which("openssl")} "$@" ;; esac\n')
    old.chmod(0o755)
    (tmp_path / "root.pem").write_bytes(CSV.root)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ran = run_script(path, str(tmp_path / "root.pem"))
    assert (ran.returncode, ran.stdout) == (STATUS["unchecked"], "")
    assert "cannot check SM2 signatures" in ran.stderr
