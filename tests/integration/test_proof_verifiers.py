"""The proof of one entry: our arithmetic, the Go program, and a shell with openssl take and refuse the same ones."""

import base64
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.audit.format.checkpoint import NoteRefused, key_id, open_note, parse_note
from app.audit.format.leaf import leaf_hash, parse_body, parse_leaf, sm3
from app.audit.format.merkle import inclusion_spans, root_by_inclusion
from app.audit.format.proof_file import proof_text
from app.signing.certificates import Certificate, CertificateRefused, make_root, make_signer, verify_issued
from tests.fixtures.log_file import Authority, Log, body
from tests.fixtures.verifiers import KEPT, SCRIPT, Verifiers

AUTHORITY, MALLET = Authority.make(), Authority.make()
LOG = Log.of(13, AUTHORITY)
PROVEN, REFUSED, UNCHECKED = 0, 4, 6


def proof(log: Log, seq: int, note: str | None = None, certificate: Certificate | None = None, *, purged: bool = False) -> str:
    """The proof file of entry `seq`, whose body may be gone."""
    size = len(log)
    path = [log.root(*span) for span in inclusion_spans(seq, size)]
    pem, body = (certificate or log.authority.signer).pem, None if purged else log.bodies[seq][1]
    return proof_text(log.leaves[seq], seq, path, note or log.note(size), pem, body=body)


def our_answer(text: str, root: Certificate) -> int:
    """Exit status of a proof by the functions that the service proves with."""
    try:
        head, note_text, signatures, certificate_pem = text.split("\n\n", 3)
        _, entry, leaf_line, index, *path = head.split("\n")
        note, certificate = f"{note_text}\n\n{signatures}\n", Certificate.load_pem(certificate_pem.encode())
        body, text = (base64.b64decode(line.removeprefix(mark), validate=True) for line, mark in ((entry, "entry "), (leaf_line, "leaf ")))
        leaf, seq = parse_leaf(text), int(index.removeprefix("index "))
        parse_body(body, leaf)
        verify_issued(certificate, root)
        origin = parse_note(note)[0].origin
        checkpoint, _ = open_note(note, origin, {key_id(origin, certificate.spki): certificate.public_key})
        reached = root_by_inclusion(leaf_hash(text), seq, checkpoint.size, [base64.b64decode(step, validate=True) for step in path])
    except (ValueError, NoteRefused, CertificateRefused):
        return REFUSED
    return PROVEN if (reached, sm3(body)) == (checkpoint.root, leaf.body_hash) else REFUSED


@pytest.mark.parametrize(("entries", "seq"), [(1, 0), (2, 1), (3, 2), (7, 3), (8, 7), (13, 0), (13, 8), (13, 12)])
def test_each_entry_is_proven(entries: int, seq: int, verifiers: Verifiers):
    """First, last and inner entries of trees of several sizes are proven."""
    text = proof(Log.of(entries, AUTHORITY), seq)

    assert our_answer(text, AUTHORITY.root) == PROVEN
    assert verifiers.proofs(text.encode(), AUTHORITY.root) == (PROVEN, PROVEN)


@pytest.mark.parametrize("seq", [0, 5, 12])
def test_a_purged_entry_is_proven_by_its_leaf(seq: int, verifiers: Verifiers):
    """Where the body is gone, the leaf is proven, and with it until when the body was to be kept; a changed one is refused."""
    text, relabelled = proof(LOG, seq, purged=True), Log.of(13, AUTHORITY)
    relabelled.leaves[seq] = relabelled.leaves[seq].replace(b'"d400"', b'"d100"')
    forged = text.replace(*(base64.b64encode(log.leaves[seq]).decode() for log in (LOG, relabelled)))

    assert verifiers.proofs(text.encode(), AUTHORITY.root) == (PROVEN, PROVEN)
    assert verifiers.proofs(forged.encode(), AUTHORITY.root) == (REFUSED, REFUSED)


def test_the_script_prints_the_entry(verifiers: Verifiers):
    """What was proven is printed as it was hashed, leaf and body, then OK."""
    text = '地址 \\ " {}[],:'
    log = replace(LOG, bodies=(*LOG.bodies[:5], ("d400", body(5, before={"recorded": "x", "text": text})), *LOG.bodies[6:]))
    (verifiers.folder / "proof").write_text(proof(log, 5), encoding="utf-8")
    (verifiers.folder / "root").write_text(AUTHORITY.root.pem, encoding="utf-8")
    ran = verifiers.script(str(verifiers.folder / "proof"), str(verifiers.folder / "root"))

    assert (ran.returncode, ran.stdout) == (PROVEN, f"{log.leaves[5].decode()}\n{log.bodies[5][1].decode()}\nOK\n")


def test_a_large_entry_is_proven(verifiers: Verifiers):
    """An entry of some hundred kilobytes is proven like a small one."""
    log = replace(LOG, bodies=(*LOG.bodies[:5], ("d400", body(5, problem="x" * 300_000)), *LOG.bodies[6:]))

    assert verifiers.proofs(proof(log, 5).encode(), AUTHORITY.root) == (PROVEN, PROVEN)


GOOD = proof(LOG, 5)
LINES = GOOD.splitlines(keepends=True)


def other_line(number: int, text: str) -> str:
    """The good proof with another line, counted from 0."""
    return "".join([*LINES[:number], text, *LINES[number + 1 :]])


def edited_entry() -> str:
    """The good proof of an entry with another operator."""
    return other_line(1, f"entry {base64.b64encode(LOG.bodies[5][1].replace(b'olivia', b'mallet')).decode()}\n")


def edited_leaf(before: bytes, after: bytes) -> str:
    """The good proof of an entry with something else in its leaf."""
    return other_line(2, f"leaf {base64.b64encode(LOG.leaves[5].replace(before, after)).decode()}\n")


def expired() -> str:
    """The proof of an entry that was recorded after its signer's certificate ended."""
    late = body(5, recorded=AUTHORITY.signer.not_after + timedelta(microseconds=1))
    return proof(replace(LOG, bodies=(*LOG.bodies[:5], ("d400", late), *LOG.bodies[6:])), 5)


def misnumbered() -> str:
    """The proof of an entry that says that it has another number."""
    log = Log.of(13, AUTHORITY)
    log.leaves[5] = log.leaves[5].replace(b'"seq":5', b'"seq":6')
    return proof(log, 5)


def of_another_leaf(member: bytes) -> Callable[[], str]:
    """The proof of a leaf that was hashed with another id or instant than its body has."""

    def made() -> str:
        log = Log.of(13, AUTHORITY)
        log.leaves[5] = re.sub(rb'("%b":"[^"]*)5' % member, rb"\g<1>4", log.leaves[5])
        return proof(log, 5)

    return made


def of_another_spelling() -> str:
    """The proof of a leaf that was hashed with a line end."""
    log = Log.of(13, AUTHORITY)
    log.leaves[5] += b"\n"
    return proof(log, 5, purged=True)


MUTATIONS: dict[str, Callable[[], str]] = {
    "entry edited": edited_entry,
    "entry of another number": lambda: other_line(1, proof(LOG, 6).splitlines(keepends=True)[1]),
    "retention edited": lambda: edited_leaf(b'"d400"', b'"d100"'),
    "month edited": lambda: edited_leaf(b"2020-11", b"2020-01"),
    "leaf of another number": lambda: other_line(2, proof(LOG, 6).splitlines(keepends=True)[2]),
    "leaf missing": lambda: other_line(2, ""),
    "leaf and entry missing": lambda: "".join([LINES[0], *LINES[3:]]),
    "entry twice": lambda: other_line(1, LINES[1] * 2),
    "index edited": lambda: other_line(3, "index 4\n"),
    "index beyond the tree": lambda: other_line(3, "index 13\n"),
    "index with a zero": lambda: other_line(3, "index 05\n"),
    "step edited": lambda: other_line(4, LINES[5]),
    "step missing": lambda: other_line(4, ""),
    "step added": lambda: other_line(4, LINES[4] * 2),
    "step cut": lambda: other_line(4, LINES[4][4:]),
    "steps swapped": lambda: "".join([*LINES[:4], LINES[5], LINES[4], *LINES[6:]]),
    "note of another size": lambda: proof(LOG, 5, note=LOG.note(12)),
    "note edited": lambda: GOOD.replace("\n13\n", "\n14\n"),
    "note by a stranger": lambda: proof(LOG, 5, note=LOG.note(13, MALLET.key)),
    "signature missing": lambda: GOOD.replace(next(line for line in LINES if line.startswith("\u2014")), ""),
    "stranger's certificate": lambda: proof(LOG, 5, note=LOG.note(13, MALLET.key), certificate=MALLET.signer),
    "root's certificate": lambda: proof(LOG, 5, note=LOG.note(13, AUTHORITY.root_key), certificate=AUTHORITY.root),
    "certificate edited": lambda: other_line(len(LINES) - 2, LINES[-2].replace(LINES[-2][4:8], "AAAA")),
    "text after an empty line": lambda: GOOD + "\nx\n",
    "certificate twice": lambda: GOOD + AUTHORITY.signer.pem,
    "certificate missing": lambda: GOOD.partition("-----BEGIN")[0],
    "cut off": lambda: GOOD[: len(GOOD) // 2],
    "last line end gone": lambda: GOOD[:-1],
    "line ends of another system": lambda: "".join([LINES[0], *(line.replace("\n", "\r\n") for line in LINES[1:])]),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_changed_proofs_are_refused(name: str, verifiers: Verifiers):
    """Each change is refused by the program and the script, and, where it is one of the proof itself, by our functions."""
    text = MUTATIONS[name]()
    of_form = {"text after an empty line", "certificate twice", "index with a zero", "last line end gone", "line ends of another system"}

    assert verifiers.proofs(text.encode(), AUTHORITY.root) == (REFUSED, REFUSED)
    assert name in of_form or our_answer(text, AUTHORITY.root) == REFUSED


def test_proofs_that_were_kept_in_one_file_are_proven_one_by_one(verifiers: Verifiers):
    """Empty lines that somebody set between them belong to none; all in one file are not checked, and nobody is accused."""
    assert verifiers.proofs(f"{GOOD}\n".encode(), AUTHORITY.root) == (PROVEN, PROVEN)
    assert verifiers.proofs(f"{GOOD}\n\n".encode(), AUTHORITY.root) == (PROVEN, PROVEN)
    assert verifiers.proofs(f"{GOOD}\n{GOOD}".encode(), AUTHORITY.root) == (UNCHECKED, UNCHECKED)
    assert verifiers.proofs(GOOD.replace("index 5", "index 4").encode() + b"\n", AUTHORITY.root) == (REFUSED, REFUSED)


@pytest.mark.parametrize("make", [expired, misnumbered, of_another_leaf(b"id"), of_another_leaf(b"recorded"), of_another_spelling])
def test_what_a_proven_entry_says_is_compared(make: Callable[[], str], verifiers: Verifiers):
    """An entry that is in the tree, and says another number, id or time than its leaf, or one after its signer's end, is refused."""
    assert verifiers.proofs(make().encode(), AUTHORITY.root) == (REFUSED, REFUSED)


def test_another_root_refuses(verifiers: Verifiers):
    """A proof says nothing under another root."""
    assert our_answer(GOOD, MALLET.root) == REFUSED
    assert verifiers.proofs(GOOD.encode(), MALLET.root) == (REFUSED, REFUSED)


def test_an_ended_certificate_still_proves_what_it_signed(verifiers: Verifiers):
    """A certificate that ended years ago vouches for the entries from before."""
    began = AUTHORITY.signer.not_before - timedelta(days=4000)
    old = replace(AUTHORITY, root=make_root(AUTHORITY.root_key, began))
    old = replace(old, signer=make_signer(old.key.spki, old.root_key, old.root, began))
    log = Log(old, tuple(("d400", body(seq, recorded=began + timedelta(seconds=seq))) for seq in range(4)))

    assert verifiers.proofs(proof(log, 2).encode(), old.root) == (PROVEN, PROVEN)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage\n",
        b'{"index": 1}',
        GOOD.replace("proof 1", "proof 2").encode(),
        GOOD.replace("\n", "\r\n").encode(),
        bytes(range(256)) * 8,
    ],
)
def test_another_file_is_not_checked(content: bytes, verifiers: Verifiers):
    """What is no proof of this format is neither proven nor refused."""
    assert verifiers.proofs(content, AUTHORITY.root) == (UNCHECKED, UNCHECKED)


def test_random_changes_are_refused(verifiers: Verifiers):
    """Whatever byte of a proof is another, neither takes it."""
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    good = GOOD.encode()
    for _ in range(15):
        where, bit = draw.randrange(len(good)), 1 << draw.randrange(8)
        mutant = good[:where] + bytes([good[where] ^ bit]) + good[where + 1 :]
        program, script = verifiers.proofs(mutant, AUTHORITY.root)
        assert program == script in (REFUSED, UNCHECKED), f"byte {where} ^ {bit} of seed {seed}"


def test_a_proof_that_another_library_signed_is_good(verifiers: Verifiers):
    """Certificate and checkpoint that the Go library made are good for openssl and for us."""
    text, root = (KEPT / "proof.txt").read_text(encoding="utf-8"), Certificate.load_pem((KEPT / "root.pem").read_bytes())

    assert our_answer(text, root) == PROVEN
    assert verifiers.script(str(KEPT / "proof.txt"), str(KEPT / "root.pem")).returncode == PROVEN


def test_the_script_says_what_it_lacks(verifiers: Verifiers, monkeypatch: pytest.MonkeyPatch):
    """Without a file, or with an openssl that has no SM2, nothing was checked, and the reason is said."""
    programs = verifiers.folder / "bin"
    programs.mkdir()
    old = programs / "openssl"
    old.write_text(f'#!/bin/sh\ncase $* in *-verify*) echo "no SM2" >&2; exit 1 ;; *) exec {shutil.which("openssl")} "$@" ;; esac\n')
    old.chmod(0o755)
    kept = str(KEPT / "proof.txt"), str(KEPT / "root.pem")

    (verifiers.folder / "empty").touch()
    (verifiers.folder / "json").write_text('{"index": 1}')
    (verifiers.folder / "mailed").write_bytes((KEPT / "proof.txt").read_bytes().replace(b"\n", b"\r\n"))
    (verifiers.folder / "two.pem").write_text(AUTHORITY.root.pem + AUTHORITY.signer.pem)
    (verifiers.folder / "signer.pem").write_text(AUTHORITY.signer.pem)
    empty, json, mailed, two, signer = (str(verifiers.folder / name) for name in ("empty", "json", "mailed", "two.pem", "signer.pem"))

    assert verifiers.script().returncode == 2
    for arguments, why in [
        ([str(KEPT / "none"), kept[1]], "no file"),
        ([empty, kept[1]], "the file is empty"),
        ([json, kept[1]], "Accept: text/plain"),
        ([mailed, kept[1]], "CRLF"),
        ([kept[0], str(Path(__file__))], "no certificate"),
        ([kept[0], empty], "the file is empty"),
        ([kept[0], two], "name one certificate"),
        ([kept[0], signer], "no root of a log"),
    ]:
        ran = verifiers.script(*arguments)
        assert (ran.returncode, why in ran.stderr) == (UNCHECKED, True), ran.stderr
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    ran = verifiers.script(*kept)
    assert (ran.returncode, ran.stdout) == (UNCHECKED, "")
    assert "cannot check SM2 signatures" in ran.stderr


@pytest.mark.parametrize("name", ["-n", "a=b", "a b", "x;touch made;$(touch made)`touch made`", "*", "地址"])
def test_the_script_takes_files_of_any_name(name: str, verifiers: Verifiers):
    """A file is read under whatever name it has: none is an option, an assignment of awk, or a command."""
    (verifiers.folder / name).write_text(GOOD, encoding="utf-8")
    (verifiers.folder / f"{name}.root").write_text(AUTHORITY.root.pem, encoding="utf-8")
    ran = subprocess.run([SCRIPT, name, f"{name}.root"], cwd=verifiers.folder, stdin=subprocess.DEVNULL, check=False, capture_output=True)

    assert ran.returncode == PROVEN, ran.stderr
    assert not (verifiers.folder / "made").exists()
