"""The verifiers that share no code refuse the same changed exports, for the same entries."""

import base64
import json
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from uuid import UUID

import pytest
from typer.testing import CliRunner

from app.audit.format.checkpoint import split_notes
from app.audit.format.export_file import CheckpointLine, EndLine, EntryLine, lines, read_header, read_line
from app.audit.format.leaf import leaf_hash, parse_leaf, sm3
from app.audit.reading.export import Wanted
from app.audit.verification.verify import verify
from app.cli.audit import app as audit_app
from app.signing.certificates import Certificate
from app.signing.sm2 import PrivateKey
from tests.fixtures.log import GrownLog
from tests.fixtures.log_file import Authority, Log, body
from tests.fixtures.verifiers import KEPT, PROGRAM, Answer, Verifiers

AUTHORITY, MALLET = Authority.make(), Authority.make()
ENDS = AUTHORITY.signer.not_after
SHELF, KEPT_UNTIL = "d400-2020-11", datetime(2020, 12, 1, tzinfo=UTC) + timedelta(days=400)
LOG = Log.of(12, AUTHORITY)
"""Twelve entries; exports have checkpoints of 4, 8 and 12."""

WHOLE, TAMPERED, UNCHECKED, GAP = 0, 4, 6, 7
ENTRIES = tuple(range(12))


def at(seq: int) -> int:
    """Index of the line of entry `seq` in an export of all."""
    return 1 + seq + seq // 4


def edited(line: bytes, *, rehashed: bool = False) -> bytes:
    """The entry's line with another operator; the hashes of body and leaf are made anew or stay."""
    entry = read_line(line, 0)
    assert isinstance(entry, EntryLine)
    body = entry.body.replace(b"olivia", b"mallet")
    leaf = replace(parse_leaf(entry.leaf), body_hash=sm3(body)).text
    return EntryLine(body, leaf, leaf_hash(leaf)).line() if rehashed else line.replace(b"olivia", b"mallet")


def with_bodies_of(export: list[bytes], *others: tuple[int, int]) -> list[bytes]:
    """The export with entries whose body is that of another: pairs of both numbers."""
    read = [read_line(export[at(one)], 0) for pair in others for one in pair]
    for (one, _), mine, theirs in zip(others, read[::2], read[1::2], strict=True):
        export[at(one)] = replace(mine, body=theirs.body).line()
    return export


def with_leaf(log: Log, seq: int, before: bytes, after: bytes) -> Log:
    """The log with another leaf of entry `seq`, hashed and signed."""
    other = replace(log)
    other.leaves[seq] = other.leaves[seq].replace(before, after)
    assert other.leaves[seq] != log.leaves[seq]
    return other


def relabelled(export: list[bytes], seq: int, before: bytes, after: bytes) -> list[bytes]:
    """The export with something else in the line of entry `seq`, whose hash stays."""
    assert before in export[at(seq)]
    export[at(seq)] = export[at(seq)].replace(before, after)
    return export


def with_body(log: Log, seq: int, new: bytes) -> Log:
    """The log with another body of entry `seq`, all hashes made anew; signed by whoever signs."""
    return replace(log, bodies=(*log.bodies[:seq], ("d400", new), *log.bodies[seq + 1 :]))


def with_header(export: Sequence[bytes], **changes: object) -> list[bytes]:
    """The export with another first line."""
    return [replace(read_header(export[0]), **changes).line(), *export[1:]]


def purged(recorded: datetime = KEPT_UNTIL, **changes: object) -> Log:
    """The log with a purge of its first ten bodies, recorded then."""
    members = {"shelf": SHELF, "first": 0, "last": 9, "count": 10} | changes
    return replace(LOG, bodies=(*LOG.bodies, ("d400", body(12, "audit.purge", recorded=recorded, **members))))


@dataclass(frozen=True)
class Mutation:
    """An export, the anchors it is checked against, and what all verifiers must answer."""

    status: int
    export: Sequence[bytes]
    named: tuple[int, ...] = ()
    anchors: Sequence[str] = ()
    root: Certificate = AUTHORITY.root


def changed(change: Callable[[list[bytes]], object], log: Log = LOG) -> list[bytes]:
    """The lines of an export after `change`."""
    export = log.export()
    change(export)
    return export


def swap(one: int, other: int) -> Callable[[list[bytes]], object]:
    """Exchanges two lines."""

    def exchanged(export: list[bytes]) -> None:
        export[one], export[other] = export[other], export[one]

    return exchanged


def put(where: int, line: bytes) -> Callable[[list[bytes]], object]:
    """Puts a line in the place of another."""
    return lambda export: export.__setitem__(where, line)


E = LOG.export()
FORGED = with_body(LOG, 2, body(2, operator="mallet"))
LATE = replace(LOG, bodies=tuple(("d400", body(seq, recorded=ENDS + timedelta(seconds=seq - 9))) for seq in ENTRIES))
ROTATED = replace(LATE, authority=AUTHORITY.rotated(ENDS - timedelta(days=1)), certificates=(AUTHORITY.signer,))
SELF_MADE = replace(FORGED, notes={size: FORGED.note(size, MALLET.key) for size in (4, 8, 12)})
TEN = range(10)
TEN_YEARS = replace(
    purged(shelf="d100-2020-11"), bodies=(*(("d3650", body(seq)) for seq in ENTRIES), *purged(shelf="d100-2020-11").bodies[12:])
)
"""Bodies to be kept for ten years, and a purge of those of hundred days."""

MUTATIONS = {
    "untouched": Mutation(WHOLE, E, anchors=[LOG.note(3), LOG.note(12)]),
    "a range": Mutation(WHOLE, LOG.export(5, 9, anchors=[3]), anchors=[LOG.note(3), LOG.note(7)]),
    "one entry": Mutation(WHOLE, Log.of(1, AUTHORITY).export()),
    "nothing yet": Mutation(WHOLE, Log.of(0, AUTHORITY).export()),
    "body edited": Mutation(TAMPERED, changed(put(at(5), edited(E[at(5)]))), (5,)),
    "two bodies edited": Mutation(TAMPERED, [edited(line) if index in (at(0), at(11)) else line for index, line in enumerate(E)], (0, 11)),
    "number edited": Mutation(TAMPERED, changed(put(at(5), E[at(5)].replace(b'"seq":5', b'"seq":7'))), (5,)),
    "body and hash edited": Mutation(TAMPERED, changed(put(at(5), edited(E[at(5)], rehashed=True))), (4,)),
    "all hashes made anew": Mutation(TAMPERED, replace(FORGED, notes={size: LOG.note(size) for size in (4, 8, 12)}).export(), (0,)),
    "two swapped": Mutation(TAMPERED, changed(swap(at(5), at(6))), (5, 5)),
    "newest dropped": Mutation(TAMPERED, changed(lambda export: export.pop(at(11))), (11,)),
    "one dropped": Mutation(TAMPERED, changed(lambda export: export.pop(at(5))), (5,)),
    "tail dropped": Mutation(TAMPERED, [*E[: at(6)], *E[-1:]], (6,)),
    "tail dropped, header fitted": Mutation(TAMPERED, with_header(Log.of(10, AUTHORITY).export(), note=LOG.note(12))),
    "tail dropped with its checkpoints": Mutation(TAMPERED, LOG.export(size=8), anchors=[LOG.note(4), LOG.note(12)]),
    "all dropped": Mutation(TAMPERED, Log.of(0, AUTHORITY).export(), anchors=[LOG.note(12)]),
    "doubled": Mutation(TAMPERED, changed(lambda export: export.insert(at(9), E[at(5)])), (5,)),
    "added": Mutation(TAMPERED, changed(lambda export: export.insert(-1, Log.of(13, AUTHORITY).export()[at(12)])), (12,)),
    "id twice": Mutation(TAMPERED, with_body(LOG, 7, body(3)).export(), (7,)),
    "no entry": Mutation(TAMPERED, with_body(LOG, 3, b"[]").export(), (3,)),
    "checkpoint edited": Mutation(TAMPERED, changed(put(at(8) - 1, CheckpointLine(LOG.note(8).replace("\n8\n", "\n7\n")).line()))),
    "checkpoint of another size": Mutation(TAMPERED, changed(swap(at(4) - 1, at(8) - 1))),
    "checkpoint twice": Mutation(TAMPERED, changed(lambda export: export.insert(at(4), E[at(4) - 1]))),
    "checkpoint by a stranger": Mutation(TAMPERED, changed(put(at(8) - 1, CheckpointLine(LOG.note(8, PrivateKey.generate())).line()))),
    "checkpoint dropped": Mutation(WHOLE, changed(lambda export: export.pop(at(8) - 1))),
    "old tree against a newer anchor": Mutation(TAMPERED, FORGED.export(), anchors=[LOG.note(12)]),
    "rewritten before the range": Mutation(TAMPERED, FORGED.export(8, anchors=[5]), anchors=[LOG.note(5)]),
    "anchor without a proof": Mutation(UNCHECKED, LOG.export(8), anchors=[LOG.note(5)]),
    "anchor of another log": Mutation(TAMPERED, E, anchors=[replace(LOG, log=UUID(int=1)).note(4)]),
    "signed again with another key": Mutation(TAMPERED, SELF_MADE.export()),
    "signed again, certificate added": Mutation(TAMPERED, replace(SELF_MADE, certificates=(MALLET.root, MALLET.signer)).export()),
    "signed by a root": Mutation(TAMPERED, replace(LOG, notes={12: LOG.note(12, AUTHORITY.root_key)}).export()),
    "another root": Mutation(TAMPERED, E, root=MALLET.root),
    "no root": Mutation(UNCHECKED, E, root=AUTHORITY.signer),
    "signer expired": Mutation(TAMPERED, LATE.export(), (11,)),
    "signer rotated in time": Mutation(WHOLE, replace(ROTATED, notes={4: LATE.note(4), 8: LATE.note(8)}).export()),
    "certificate edited": Mutation(TAMPERED, changed(put(0, E[0].replace(base64.b64encode(AUTHORITY.signer.der)[-9:], b"AAAAAAAA=")))),
    "certificate of no root": Mutation(TAMPERED, replace(LOG, certificates=(MALLET.signer,)).export()),
    "no certificates": Mutation(TAMPERED, with_header(E, certificates=())),
    "another log's name": Mutation(TAMPERED, with_header(E, log="sluice/another")),
    "first moved": Mutation(TAMPERED, with_header(E, first=1), (0,)),
    "chain of the header": Mutation(TAMPERED, with_header(LOG.export(4), chain=bytes(32))),
    "chain of the end": Mutation(TAMPERED, [*E[:-1], EndLine(12, LOG.chain(11)).line()]),
    "count of the end": Mutation(TAMPERED, [*E[:-1], EndLine(11, LOG.chain(12)).line()]),
    "left hashes": Mutation(TAMPERED, with_header(LOG.export(4), left=(bytes(32),)), (0,)),
    "no left hashes": Mutation(TAMPERED, with_header(LOG.export(4), left=())),
    "right hashes": Mutation(TAMPERED, with_header(LOG.export(0, 8), right=(bytes(32),)), (8,)),
    "gap": Mutation(GAP, with_body(LOG, 3, body(3, "audit.gap", lost=5)).export(), (3,)),
    "gap of unknown size": Mutation(GAP, with_body(LOG, 3, body(3, "audit.gap")).export(), (3,)),
    "gap without loss": Mutation(WHOLE, with_body(LOG, 3, body(3, "audit.gap", lost=0)).export()),
    "purge with its entry": Mutation(WHOLE, purged().export(purged=TEN)),
    "purge without its entry": Mutation(GAP, LOG.export(purged=TEN), (0,)),
    "purge too early": Mutation(GAP, purged(KEPT_UNTIL - timedelta(microseconds=1)).export(purged=TEN), (0,)),
    "purge of another shelf": Mutation(GAP, purged(shelf="d400-2020-10").export(purged=TEN), (0,)),
    "purge of another month": Mutation(GAP, purged(shelf="d400-2020-09").export(purged=range(2, 10)), (2,)),
    "ten years purged as hundred days": Mutation(GAP, TEN_YEARS.export(purged=TEN), (0,)),
    "ten years relabelled as hundred days": Mutation(
        TAMPERED, relabelled(TEN_YEARS.export(purged=TEN), 5, b'"retention":"d3650"', b'"retention":"d100"'), (0, 5)
    ),
    "retention of a purged entry": Mutation(TAMPERED, relabelled(purged().export(purged=TEN), 5, b'"d400"', b'"d100"'), (5,)),
    "month of a purged entry": Mutation(TAMPERED, relabelled(purged().export(purged=TEN), 5, b"2020-11", b"2020-01"), (5,)),
    "id of a purged entry": Mutation(TAMPERED, relabelled(purged().export(purged=TEN), 5, b"000005", b"000055"), (5,)),
    "hash of a purged body": Mutation(TAMPERED, relabelled(purged().export(purged=TEN), 5, sm3(body(5)).hex().encode(), b"0" * 64), (5,)),
    "retention of an entry": Mutation(TAMPERED, relabelled(LOG.export(), 5, b'"d400"', b'"d9999"'), (5,)),
    "bodies swapped": Mutation(TAMPERED, with_bodies_of(LOG.export(), (5, 6), (6, 5)), (5, 6)),
    "body of another entry": Mutation(TAMPERED, with_bodies_of(LOG.export(), (5, 7)), (5,)),
    "leaf of another id": Mutation(TAMPERED, with_leaf(LOG, 5, b"00000000005", b"00000000055").export(), (5,)),
    "leaf of another instant": Mutation(TAMPERED, with_leaf(LOG, 5, b":05.000000Z", b":04.000000Z").export(), (5,)),
    "leaf of another spelling": Mutation(TAMPERED, with_leaf(LOG, 5, b'"d400"', b'"d4"').export(), (5,)),
    "purged leaf of another spelling": Mutation(TAMPERED, with_leaf(LOG, 5, b'"id":', b'"ID":').export(purged=[5]), (5,)),
    "id twice, one without its body": Mutation(TAMPERED, with_body(purged(), 11, body(3)).export(purged=TEN), (11,)),
    "purged in the last years of calendars": Mutation(TAMPERED, with_leaf(LOG, 5, b'"2020-11', b'"9990-11').export(purged=[5]), (5, 5)),
    "instant of another form": Mutation(TAMPERED, with_body(LOG, 3, body(3).replace(b".000000Z", b"Z")).export(), (3,)),
    "half a surrogate": Mutation(TAMPERED, with_body(LOG, 3, body(3).replace(b"olivia", b"\\ud800")).export(), (3,)),
    "number beyond floats": Mutation(TAMPERED, with_body(LOG, 3, body(3)[:-1] + b',"x":1e400}').export(), (3,)),
    "too deep": Mutation(TAMPERED, with_body(LOG, 3, body(3)[:-1] + b',"x":' + b"[" * 1024 + b"]" * 1024 + b"}").export(), (3,)),
    "purge of more than it says": Mutation(GAP, purged().export(purged=[*TEN, 11]), (0,)),
    "tampering and a gap": Mutation(TAMPERED, changed(put(at(5), edited(E[at(5)])), with_body(LOG, 3, body(3, "audit.gap"))), (3, 5)),
    "truncated in a line": Mutation(TAMPERED, [*E[: at(6)], E[at(6)][:-20]], (6,)),
    "truncated between lines": Mutation(TAMPERED, E[: at(6)], (6,)),
    "last line end gone": Mutation(TAMPERED, [*E[:-1], E[-1][:-1]]),
    "truncated header": Mutation(TAMPERED, [E[0][:500]]),
    "something after the end": Mutation(TAMPERED, [*E, b"\n"]),
    "garbage between lines": Mutation(TAMPERED, changed(lambda export: export.insert(5, b"\x00\xff\n"))),
    "empty": Mutation(UNCHECKED, []),
    "other line ends": Mutation(UNCHECKED, [line.replace(b"\n", b"\r\n") for line in E]),
    "another line end": Mutation(TAMPERED, changed(lambda export: export.insert(5, b"\r\n"))),
    "a first line cut at another line end": Mutation(TAMPERED, [E[0].replace(b"\n", b"\r")]),
    "garbage": Mutation(UNCHECKED, [bytes(range(256)) * 40]),
    "another format": Mutation(UNCHECKED, changed(put(0, E[0].replace(b'export":1', b'export":2')))),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_both_answer_the_same(name: str, verifiers: Verifiers):
    """Each change has its exit status and names its entries, whichever verifier is asked."""
    case = MUTATIONS[name]
    ours, other = verifiers.exports(b"".join(case.export), case.root, case.anchors)

    assert Answer(case.status, case.named) == ours == other


RANGE = purged()
FILE = b"".join(RANGE.export(7, 13, anchors=[5], purged=[8, 9]))
ANCHORS = [RANGE.note(5), RANGE.note(9)]
MANY = 300


def mutants(seed: int) -> Iterator[tuple[str, bytes]]:
    """The file with a bit flipped, bytes left out, doubled or exchanged, or lines moved, hundreds of times."""
    draw = random.Random(seed)
    for _ in range(MANY):
        where, length = draw.randrange(len(FILE)), draw.choice([1, 1, 2, 8, 60])
        piece = FILE[where : where + length]
        rows = FILE.splitlines(keepends=True)
        one, other = draw.randrange(len(rows)), draw.randrange(len(rows))
        rows[one], rows[other] = rows[other], rows[one]
        yield draw.choice(
            [
                (f"bit at {where}", FILE[:where] + bytes([FILE[where] ^ 1 << draw.randrange(8)]) + FILE[where + 1 :]),
                (f"{length} left out at {where}", FILE[:where] + FILE[where + length :]),
                (f"{length} doubled at {where}", FILE[:where] + piece + FILE[where:]),
                (f"{length} reversed at {where}", FILE[:where] + piece[::-1] + FILE[where + length :]),
                (f"lines {one} and {other} swapped", b"".join(rows)),
                (f"cut at {where}", FILE[:where]),
            ]
        )


def test_both_tell_the_same_fields(verifiers: Verifiers):
    """Reports for programs have the same members, and the same values in all but what is told in words."""
    old = LOG.export(size=8)
    del old[3:5]
    export, root, anchors = verifiers.folder / "export", verifiers.folder / "root", verifiers.folder / "anchors"
    root.write_text(AUTHORITY.root.pem)
    anchors.write_text(f"# kept on 2026-11-30\n{LOG.note(4)}\n{LOG.note(12)}")
    arguments = ["--export", str(export), "--root", str(root), "--anchor", str(anchors), "--output", "json"]
    for content in LOG.export(), old, LOG.export()[:3], LOG.export(purged=[3]), [b"{}\n"]:
        export.write_bytes(b"".join(content))
        other = json.loads(subprocess.run([PROGRAM, *arguments], capture_output=True, check=False).stdout)
        ours = json.loads(CliRunner().invoke(audit_app, ["verify", *arguments]).stdout)

        for report in ours, other:
            for finding in report["findings"]:
                assert finding.pop("why")
        assert sorted(ours.pop("findings"), key=str) == sorted(other.pop("findings"), key=str)
        assert ours == other


def test_both_answer_the_same_to_hundreds_of_random_changes(verifiers: Verifiers):
    """Whatever is done to a file with purged bodies, a proof and anchors, both verifiers give one answer."""
    seed = random.randrange(2**32)
    for what, mutant in mutants(seed):
        ours, other = verifiers.exports(mutant, AUTHORITY.root, ANCHORS)
        assert ours == other, f"{what} of seed {seed}"
        assert (ours.status == WHOLE) == (mutant == FILE), f"{what} of seed {seed}"


def test_an_export_that_another_library_signed_is_whole():
    """Certificates and checkpoints that the Go library made are good for OpenSSL."""
    root = Certificate.load_pem((KEPT / "root.pem").read_bytes())
    anchors = split_notes((KEPT / "anchors.txt").read_text(encoding="utf-8"))
    report = verify(lines(BytesIO((KEPT / "export.jsonl").read_bytes())), root, anchors)

    assert (report.verdict, report.entries, report.checkpoints, report.anchors) == ("whole", 5, 3, 2)


@pytest.mark.parametrize(
    ("damage", "answer"),
    [
        ("", Answer(WHOLE)),
        ("UPDATE audit.body SET body = replace(encode(body, 'escape'), '\"op\"', '\"eve\"')::bytea WHERE seq = 7", Answer(TAMPERED, (7,))),
        ("DELETE FROM audit.leaf WHERE seq >= 18", Answer(TAMPERED, (18,))),
        ("DELETE FROM audit.body WHERE seq = 7", Answer(GAP, (7,))),
        ("UPDATE audit.leaf SET retention = 'd9999' WHERE seq = 7", Answer(TAMPERED, (7,))),
        ("UPDATE audit.leaf SET recorded = recorded - interval '1 day' WHERE seq = 7", Answer(TAMPERED, (7,))),
        ("UPDATE audit.leaf SET id = gen_random_uuid() WHERE seq = 7", Answer(TAMPERED, (7,))),
        ("UPDATE audit.checkpoint SET note = 'x' WHERE size = 10", Answer(TAMPERED)),
    ],
)
async def test_both_answer_the_same_to_a_log_of_the_database(damage: str, answer: Answer, grown_log: GrownLog, verifiers: Verifiers):
    """What a superuser does to the tables is found in the export by both verifiers, and an untouched log is whole."""
    for _ in range(2):
        await grown_log.grow(10)
        await grown_log.sign()
    if damage:
        await grown_log.damage(damage)
    exported = await grown_log.log.export(Wanted(), operator="auditor")
    async with aclosing(exported.lines) as batches:
        export = b"".join([batch.lines async for batch in batches])
    ours, other = verifiers.exports(export, grown_log.keys.root)

    assert answer == ours == other


async def test_a_proof_of_the_database_is_good_for_program_and_script(grown_log: GrownLog, verifiers: Verifiers):
    """The proof file that the service gives is taken by the program and by the script."""
    await grown_log.grow(10)
    await grown_log.sign()
    proof = await grown_log.log.inclusion(3, None, operator="auditor")

    assert verifiers.proofs(proof.file.encode(), grown_log.keys.root) == (WHOLE, WHOLE)
