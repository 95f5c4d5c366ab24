"""What is done to an export, and what the verifier says of it: each altered entry by name, and never `whole`."""

import io
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.audit.format import checkpoint
from app.audit.format.checkpoint import MAX_NOTE_BYTES, Checkpoint
from app.audit.format.export_file import MAX_LINE_BYTES, CheckpointLine, EndLine, EntryLine, PurgedLine, lines, read_header, read_line
from app.audit.format.leaf import leaf_hash, parse_leaf, sm3
from app.audit.verification.report import Report
from app.audit.verification.verify import verify
from app.clock import ManualClock
from app.instants import rfc3339
from app.signing.certificates import ALGORITHM, make_signer
from app.signing.sm2 import PrivateKey
from tests.fixtures.log_file import BEGAN, LOG, Authority, Log, body

AUTHORITY = Authority.make()
ROOT = AUTHORITY.root
SMALL = Log.of(12, AUTHORITY)
"""Twelve entries; the export has checkpoints of 4, 8 and 12, so entry n is line n + n // 4 from 0, after the header."""


def at(seq: int, every: int = 4) -> int:
    """Index of the line of entry `seq` in an export of all."""
    return 1 + seq + seq // every


def said(report: Report) -> list[tuple[str, int | None, int | None]]:
    """What each finding is about."""
    return [(finding.what, finding.seq, finding.last) for finding in report.findings]


def entry_of(line: bytes) -> EntryLine:
    """The parts of an entry's line."""
    entry = read_line(line, 0)
    assert isinstance(entry, EntryLine)
    return entry


def altered(line: bytes, with_hash: bool = False) -> bytes:
    """The entry line with another operator, and with the hashes that fit."""
    entry = entry_of(line)
    body = entry.body.replace(b"olivia", b"mallet")
    assert body != entry.body
    leaf = replace(parse_leaf(entry.leaf), body_hash=sm3(body)).text
    return EntryLine(body, leaf, leaf_hash(leaf)).line() if with_hash else replace(entry, body=body).line()


def test_a_whole_log_is_whole():
    """An untouched export is whole, and the report tells what it has."""
    report = verify(SMALL.export(), ROOT)

    assert report == Report(
        verdict="whole",
        findings=(),
        log=f"sluice/{LOG}",
        first=0,
        end=12,
        entries=12,
        recorded_first=rfc3339(BEGAN),
        recorded_last=rfc3339(BEGAN + timedelta(seconds=11)),
        checkpoints=4,
        size=12,
        root=SMALL.root(0, 12).hex(),
    )


@pytest.mark.parametrize("entries", [1, 2, 3, 7, 8, 9])
def test_logs_of_any_size_are_whole(entries: int):
    """Sizes around powers of two make no difference."""
    assert verify(Log.of(entries, AUTHORITY).export(every=1), ROOT).verdict == "whole"


@given(st.integers(0, 12), st.integers(0, 12), st.lists(st.integers(0, 12), max_size=4))
@settings(max_examples=60, deadline=None)
def test_each_range_is_whole_with_anchors_of_any_size(first: int, length: int, anchors: list[int]):
    """Any range of the log verifies by itself, against any checkpoints that were kept."""
    end = min(first + length, 12)
    report = verify(SMALL.export(first, end, anchors=anchors), ROOT, [SMALL.note(size) for size in anchors])

    assert report.findings == ()
    assert (report.verdict, report.entries, report.anchors) == ("whole", end - first, len(anchors))


def test_an_edited_body_is_named():
    """A body that was changed does not have the hash in its leaf, and its entry is named; the others stand."""
    export = SMALL.export()
    export[at(5)] = altered(export[at(5)])
    report = verify(export, ROOT)

    assert (report.verdict, report.entries) == ("tampered", 11)
    assert said(report) == [("entry", 5, None)]
    assert report.findings[0].why.startswith("its body was altered")


@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"d400"', b'"d100"'), (b"2020-11-01", b"2020-10-01"), (b"00000000005", b"00000000006"), (sm3(body(5)).hex().encode(), b"0" * 64)],
)
@pytest.mark.parametrize("purged", [(), range(10)])
def test_an_edited_leaf_is_named(before: bytes, after: bytes, purged: Collection[int]):
    """A leaf that was changed does not have the hash that is stored, whether the body is there or gone: nothing it says is believed."""
    export = purged_log(KEPT_UNTIL).export(purged=purged)
    leaf = read_line(export[at(5)], 0).leaf
    export[at(5)] = replace(read_line(export[at(5)], 0), leaf=leaf.replace(before, after)).line()
    report = verify(export, ROOT)

    assert leaf.count(before) == 1
    assert (report.verdict, said(report)) == ("tampered", [("entry", 5, None)])
    assert report.findings[0].why.startswith("its leaf was altered")


def test_bodies_under_the_leaves_of_others_are_named():
    """Two bodies that changed places, and one that stands twice, are named where they do not belong."""
    export = SMALL.export()
    five, six = (entry_of(export[at(seq)]) for seq in (5, 6))
    export[at(5)], export[at(6)] = replace(five, body=six.body).line(), replace(six, body=five.body).line()
    assert said(verify(export, ROOT)) == [("entry", 5, None), ("entry", 6, None)]

    export[at(6)] = six.line()
    assert said(verify(export, ROOT)) == [("entry", 5, None)]


@pytest.mark.parametrize("change", [{"id": "01900000-0000-7000-8000-000000000055"}, {"recorded": BEGAN}])
def test_a_body_and_its_leaf_say_the_same(change: dict):
    """Even hashed and signed, a body with another id or instant than its leaf is no entry."""
    log = replace(SMALL, bodies=(*SMALL.bodies[:5], ("d400", body(5, **change)), *SMALL.bodies[6:]))
    log.leaves[5] = replace(parse_leaf(SMALL.leaves[5]), body_hash=sm3(log.bodies[5][1])).text
    report = verify(log.export(), ROOT)

    assert (report.verdict, said(report)) == ("tampered", [("entry", 5, None)])
    assert "does not have the id and the instant of its leaf" in report.findings[0].why


def test_each_edited_body_is_named():
    """Of several changed bodies each is named, the first and the last of the file too."""
    export = SMALL.export()
    for seq in (0, 5, 6, 11):
        export[at(seq)] = altered(export[at(seq)])

    assert said(verify(export, ROOT)) == [("entry", seq, None) for seq in (0, 5, 6, 11)]


def test_edited_numbers_do_not_move_an_entry():
    """Whatever number an altered entry claims, it is named by its place, and those after it keep theirs."""
    export = SMALL.export()
    export[at(5)] = export[at(5)].replace(b'"seq":5', b'"seq":9')

    assert said(verify(export, ROOT)) == [("entry", 5, None)]


def test_an_edited_body_with_its_hash_breaks_the_tree():
    """Where the stored hash was changed with the body, the checkpoints before and after are named, and the chain does not close."""
    export = SMALL.export()
    export[at(5)] = altered(export[at(5)], with_hash=True)
    report = verify(export, ROOT)

    assert report.verdict == "tampered"
    assert sorted(said(report)) == [("chain", None, None), ("tree", 4, 7)]
    assert "between the checkpoint of size 4 and that of size 8" in next(f.why for f in report.findings if f.what == "tree")
    assert report.size == 4


def test_an_edited_log_with_all_its_hashes_breaks_the_tree():
    """Whoever rebuilds all hashes, and the chain too, still lacks the signature."""
    bodies = [*SMALL.bodies[:5], ("d400", body(5, operator="mallet")), *SMALL.bodies[6:]]
    rebuilt = replace(SMALL, bodies=tuple(bodies), notes={size: SMALL.note(size) for size in (4, 8, 12)})

    assert said(verify(rebuilt.export(), ROOT)) == [("tree", 4, 7)]


def test_swapped_entries_are_found():
    """Of two entries that changed places the earlier is named twice: it is missing, and comes too late."""
    export = SMALL.export()
    export[at(5)], export[at(6)] = export[at(6)], export[at(5)]
    report = verify(export, ROOT)

    assert report.verdict == "tampered"
    assert said(report) == [("order", 5, None), ("order", 5, None)]


def test_entries_that_swapped_numbers_break_the_tree():
    """Two entries that changed places, numbers and hashes included, break the tree between two checkpoints."""
    bodies = list(SMALL.bodies)
    bodies[5], bodies[6] = bodies[6], bodies[5]
    swapped = replace(SMALL, bodies=tuple(bodies), notes={size: SMALL.note(size) for size in (4, 8, 12)})

    assert said(verify(swapped.export(), ROOT)) == [("tree", 4, 7)]


@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 5), (5, 9), (11, 11), (8, 11), (0, 11)])
def test_dropped_entries_are_named(first: int, last: int):
    """Lines that are missing, at the end and all of them too, are named by the numbers they left out."""
    export = SMALL.export()
    kept = [line for line in export if not any(line == export[at(seq)] for seq in range(first, last + 1))]
    report = verify(kept, ROOT)

    assert report.verdict == "tampered"
    assert ("order", first, None if first == last else last, "missing") in [(f.what, f.seq, f.last, f.why) for f in report.findings]


def test_a_tail_that_is_dropped_with_its_numbers_breaks_the_tree():
    """A header that speaks of fewer entries, and an end that agrees, do not fit the note that closes the file."""
    shorter = Log.of(10, AUTHORITY)
    export = shorter.export(every=4)
    export[0] = replace(read_header(export[0]), note=SMALL.note(12)).line()
    assert ("checkpoint", None, None) in said(verify(export, ROOT))

    export[0] = replace(read_header(export[0]), size=12, right=(bytes(32),)).line()
    assert ("tree", 8, 11) in said(verify(export, ROOT))


def test_a_tail_that_is_dropped_with_its_checkpoints_is_found_by_an_anchor():
    """An export from before is whole by itself; against a checkpoint of later it is an old tree shown again."""
    old = SMALL.export(size=8)

    assert verify(old, ROOT).verdict == "whole"
    assert verify(old, ROOT, [SMALL.note(8)]).verdict == "whole"
    report = verify(old, ROOT, [SMALL.note(4), SMALL.note(12)])
    assert (report.verdict, said(report), report.anchors) == ("tampered", [("anchor", None, None)], 1)
    assert report.findings[0].why == (
        "the log had 12 entries when it was anchored, the file closes at 8: entries were taken off its end, or an older state is shown"
    )


def test_an_added_entry_is_named():
    """A line that was put in is named where it stands for an entry that is there, and breaks the tree where it takes its place."""
    export = SMALL.export()
    export.insert(at(6), altered(export[at(5)], with_hash=True))
    assert said(verify(export, ROOT)) == [("order", 5, None)]

    more = Log.of(13, AUTHORITY)
    export = SMALL.export()
    export.insert(-1, EntryLine(more.bodies[12][1], more.leaves[12], more.hashes[12]).line())
    assert said(verify(export, ROOT)) == [("order", 12, None)]


def test_a_doubled_entry_is_named():
    """A line that stands twice is named, at once and later."""
    for where in (at(6), at(10)):
        export = SMALL.export()
        export.insert(where, export[at(5)])
        assert said(verify(export, ROOT)) == [("order", 5, None)]


def test_an_id_that_comes_twice_is_named():
    """Two entries with one id are found although both were signed."""
    doubled = replace(SMALL, bodies=(*SMALL.bodies, ("d400", body(3))))

    assert said(verify(doubled.export(), ROOT)) == [("entry", 12, None)]


def test_what_is_signed_but_no_entry_is_named():
    """Bytes that have their hash and are no entry are told by line and place."""
    for wrong in (b"nonsense", b"{}", b"[]", orjson.dumps({"id": 1, "kind": "x", "recorded": "y"})):
        log = replace(SMALL, bodies=(*SMALL.bodies[:3], ("d400", wrong), *SMALL.bodies[4:]))
        report = verify(log.export(), ROOT)
        assert (report.verdict, said(report)[0]) == ("tampered", ("entry", 3, None))


@pytest.mark.parametrize("change", ["size", "root", "signature"])
def test_a_changed_checkpoint_is_refused(change: str):
    """A checkpoint that says something else than was signed, or is signed otherwise, is refused; the entries still stand."""
    export = SMALL.export()
    wrong = {
        "size": SMALL.note(8).replace("\n8\n", "\n7\n"),
        "root": SMALL.note(8).replace("\n8\n", "\n8\nA", 1).replace("=\n\n", "\n\n", 1),
        "signature": SMALL.note(8).split("\n\n")[0] + "\n\n" + SMALL.note(4).split("\n\n")[1],
    }[change]
    export[at(8) - 1] = CheckpointLine(wrong).line()
    report = verify(export, ROOT)

    assert (report.verdict, said(report), report.entries) == ("tampered", [("checkpoint", None, None)], 12)


def test_a_checkpoint_in_another_place_is_refused():
    """A good checkpoint that does not follow its last entry, or stands twice, is refused."""
    export = SMALL.export()
    export[at(4) - 1], export[at(8) - 1] = export[at(8) - 1], export[at(4) - 1]
    assert said(verify(export, ROOT)) == [("checkpoint", None, None)] * 2

    export = SMALL.export()
    export.insert(at(4), export[at(4) - 1])
    assert said(verify(export, ROOT)) == [("order", None, None)]


def test_dropped_checkpoints_are_not_needed():
    """The checkpoint that closes the file proves all entries; those between only say where a break is."""
    export = [line for line in SMALL.export() if not line.startswith(b'{"checkpoint"')]
    assert verify(export, ROOT).verdict == "whole"

    export[6] = altered(export[6], with_hash=True)
    assert ("tree", 0, 11) in said(verify(export, ROOT))


def test_an_old_tree_is_refused_against_a_newer_anchor():
    """A log that was rebuilt with the stolen signing key is refused by any checkpoint that was kept, in or before its range."""
    forged = replace(SMALL, bodies=(*SMALL.bodies[:2], ("d400", body(2, operator="mallet")), *SMALL.bodies[3:]))
    assert verify(forged.export(), ROOT).verdict == "whole"

    for first, size in ((0, 8), (0, 12), (4, 3), (4, 4), (8, 6)):
        report = verify(forged.export(first, anchors=[size]), ROOT, [SMALL.note(size)])
        assert (report.verdict, said(report)) == ("tampered", [("anchor", None, None)])
    assert verify(forged.export(), ROOT, [SMALL.note(2)]).verdict == "whole"


def test_an_emptied_log_is_refused_against_an_anchor():
    """A log that begins anew, under its old name, is refused by what was kept of the one before."""
    report = verify(Log.of(1, AUTHORITY).export(), ROOT, [SMALL.note(12)])

    assert (report.verdict, said(report)) == ("tampered", [("anchor", None, None)])


def test_an_anchor_without_proof_cannot_be_checked():
    """An anchor that lies outside of the range needs a proof in the file; without it nothing is claimed."""
    report = verify(SMALL.export(8), ROOT, [SMALL.note(5), SMALL.note(9)])

    assert (report.verdict, said(report), report.anchors) == ("unchecked", [("anchor", None, None)], 1)
    assert "no proof for the anchor of size 5" in report.findings[0].why


def test_a_wrong_proof_for_an_anchor_is_refused():
    """A proof with a step changed or left out is refused."""
    header = SMALL.header(8, anchors=[5])
    proof = header.consistency[0]
    for path in (proof.path[1:], (bytes(32), *proof.path[1:]), (*proof.path, bytes(32)), ()):
        export = SMALL.export(8, anchors=[5])
        export[0] = replace(header, consistency=(replace(proof, path=path),)).line()
        assert said(verify(export, ROOT, [SMALL.note(5)])) == [("anchor", None, None)]


def test_a_proof_that_is_there_is_checked_or_told():
    """A proof is checked even where the entries show the same, and told where nobody asked for it."""
    header = SMALL.header(8, anchors=[4])
    broken = replace(header, consistency=(replace(header.consistency[0], path=(bytes(32),)),))
    rest = SMALL.export(8)[1:]

    assert verify([header.line(), *rest], ROOT, [SMALL.note(4)]).verdict == "whole"
    assert said(verify([broken.line(), *rest], ROOT, [SMALL.note(4)])) == [("anchor", None, None)]
    assert verify([header.line(), *rest], ROOT).remarks == ("the file has a proof for an anchor of size 4, and none was given",)


def test_an_anchor_of_another_log_or_key_is_refused():
    """An anchor that is not signed by a signer of this log, or names another log, is refused."""
    other = replace(SMALL, log=UUID(int=1))
    for anchor in (other.note(4), SMALL.note(4, PrivateKey.generate()), SMALL.note(4)[:-9] + "\n"):
        report = verify(SMALL.export(), ROOT, [anchor])
        assert (report.verdict, said(report)) == ("tampered", [("anchor", None, None)])


def test_a_log_signed_by_another_key_is_refused():
    """A log rebuilt and signed with a key that the root did not issue is refused, with that key's certificate in the file or not."""
    mallet = Authority.make()
    forged = replace(SMALL, bodies=(("d400", body(0, operator="mallet")), *SMALL.bodies[1:]), notes={})
    signed = {size: forged.note(size, mallet.key) for size in (4, 8, 12)}
    for certificates in ((), (mallet.signer,), (mallet.root, mallet.signer)):
        report = verify(replace(forged, notes=signed, certificates=certificates).export(), ROOT)
        assert report.verdict == "tampered"
        assert ("checkpoint", None, None) in said(report)
        assert report.checkpoints == 0


def test_the_time_that_a_file_covers_is_told():
    """The earliest and the latest that its entries say, whatever their order; nothing where no entry can be believed."""
    times = [BEGAN + timedelta(seconds=second) for second in (5, 3, 9, 4)]
    log = Log(AUTHORITY, tuple(("d400", body(seq, recorded=recorded)) for seq, recorded in enumerate(times)))
    told, none = verify(log.export(), ROOT), verify(Log(AUTHORITY, ()).export(), ROOT)

    assert (told.recorded_first, told.recorded_last) == (rfc3339(times[1]), rfc3339(times[2]))
    assert (none.recorded_first, none.recorded_last) == (None, None)


def test_a_log_under_another_root_is_refused():
    """A log that is whole under its own root is refused under the one that the auditor was given, once and not for each checkpoint."""
    report = verify(SMALL.export(), Authority.make().root, [SMALL.note(4)])

    assert (report.verdict, report.checkpoints, report.anchors) == ("tampered", 0, 0)
    assert [finding.why for finding in report.findings] == ["the given root issued none of the signers in the file"]
    assert (report.checkpoints, report.size) == (0, None)


def test_certificates_of_an_older_root_are_passed_over():
    """A log that changed its root keeps the certificates from before; those of no root at all are damaged or forged."""
    older = Authority.make()
    report = verify(replace(SMALL, certificates=(older.root, older.signer)).export(), ROOT)
    assert report.verdict == "whole"

    report = verify(replace(SMALL, certificates=(older.signer,)).export(), ROOT)
    assert (report.verdict, said(report)) == ("tampered", [("certificate", None, None)])


def test_a_certificate_in_another_spelling_is_refused():
    """A copy of the root whose signature has bits to spare is no certificate, so that each has one form."""
    spare = ROOT.der.rindex(ALGORITHM) + len(ALGORITHM) + 2  # after tag and length of the signature, before its own bytes
    copy = replace(ROOT, der=ROOT.der[:spare] + b"\x01" + ROOT.der[spare + 1 :])
    report = verify(replace(SMALL, certificates=(copy,)).export(), ROOT)

    assert said(report) == [("certificate", None, None)]


def test_a_signer_that_may_issue_is_no_signer():
    """Another root is not a signer, though the key that it holds signed; nor is whatever the given root did not sign."""
    rogue = Authority.make()
    signed = {size: SMALL.note(size, rogue.root_key) for size in (4, 8, 12)}
    report = verify(replace(SMALL, certificates=(rogue.root,), notes=signed).export(), ROOT)

    assert report.verdict == "tampered"
    assert report.checkpoints == 0


def test_a_root_that_is_none_checks_nothing():
    """A certificate that may not issue others is no root, even the signer's own: nothing is checked with it."""
    report = verify(SMALL.export(), AUTHORITY.signer)

    assert (report.verdict, said(report)) == ("unchecked", [("certificate", None, None)])
    assert "is no root" in report.findings[0].why


def test_an_expired_signer_vouches_for_nothing_recorded_later():
    """A signer whose certificate ended signs no entry recorded after; the first such entry is named, once."""
    ends = AUTHORITY.signer.not_after
    bodies = tuple(("d400", body(seq, recorded=ends + timedelta(seconds=seq - 5))) for seq in range(12))
    log = replace(SMALL, bodies=bodies)
    report = verify(log.export(), ROOT)

    assert report.verdict == "tampered"
    assert said(report) == [("checkpoint", 7, None), ("checkpoint", 11, None)]


def test_a_rotated_signer_goes_on():
    """After a rotation the new signer vouches for what is recorded since, and the old one for what it signed."""
    ends = AUTHORITY.signer.not_after
    rotated = AUTHORITY.rotated(ends - timedelta(days=1))
    bodies = tuple(("d400", body(seq, recorded=ends + timedelta(seconds=seq - 5.5))) for seq in range(12))
    old = replace(SMALL, bodies=bodies)
    log = replace(old, authority=rotated, certificates=(AUTHORITY.signer,), notes={4: old.note(4)})
    assert verify(log.export(), ROOT).findings == ()

    late = replace(log, notes={4: old.note(4), 8: old.note(8)})
    assert said(verify(late.export(), ROOT)) == [("checkpoint", 7, None)]


def test_a_renewed_certificate_of_one_key_counts_to_its_end():
    """Where one key has two certificates, the later end counts, whichever stands first."""
    ends = AUTHORITY.signer.not_after
    renewed = make_signer(AUTHORITY.key.spki, AUTHORITY.root_key, ROOT, ends)
    bodies = tuple(("d400", body(seq, recorded=ends + timedelta(seconds=seq))) for seq in range(4))
    for first, second in ((AUTHORITY.signer, renewed), (renewed, AUTHORITY.signer)):
        log = Log(replace(AUTHORITY, signer=first), bodies, certificates=(second,))
        assert verify(log.export(), ROOT).verdict == "whole"


def test_another_logs_file_is_refused_by_its_notes():
    """A header that names another log than its notes is refused."""
    export = SMALL.export()
    export[0] = replace(read_header(export[0]), log="sluice/another").line()
    report = verify(export, ROOT)

    assert report.verdict == "tampered"
    assert report.checkpoints == 0


def test_a_file_that_was_cut_off_is_refused_wherever_it_was_cut():
    """No beginning of a file is whole; one without its first line cannot be checked."""
    whole = b"".join(SMALL.export(every=12))
    first = len(SMALL.export(every=12)[0])
    for end in [*range(0, first, 97), *range(first, len(whole), 41), len(whole) - 1]:
        report = verify(lines(io.BytesIO(whole[:end])), ROOT)
        assert report.verdict in (("tampered", "unchecked") if end < first else ("tampered",))
        assert verify(lines(io.BytesIO(b"")), ROOT).verdict == "unchecked"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\x00" * 100,
        bytes(range(256)) * 40,
        b"\x1f\x8b\x08" + b"x" * 50,
        b"{}\n",
        b'{"sluice_audit_export":2,"x":1}\n',
        b"x" * (MAX_LINE_BYTES + 5),
    ],
)
def test_another_file_is_not_checked(content: bytes):
    """What does not begin like an export that we know is neither whole nor tampered."""
    report = verify(lines(io.BytesIO(content)), ROOT)

    assert (report.verdict, said(report)) == ("unchecked", [("file", None, None)])


def test_garbage_between_lines_is_named_by_line():
    """Lines that are none of an export, of 100 MB or binary, are told by their number, and memory stays bounded."""
    export = SMALL.export()
    for garbage in (b"\x00\xff\n", b"\n", b'{"entry":1}\n'):
        report = verify([*export[:5], garbage, *export[5:]], ROOT)
        assert (report.verdict, said(report)) == ("tampered", [("line", None, None)])
        assert report.findings[0].why.startswith("line 6: ")

    class Endless(io.RawIOBase):
        """100 MB without an end of line, made while it is read."""

        left = 100 * 1024 * 1024

        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            taken = min(len(buffer), self.left)
            self.left -= taken
            buffer[:taken] = b"x" * taken
            return taken

    report = verify([*export[:5], *lines(io.BufferedReader(Endless())), *export[5:]], ROOT)
    assert (report.verdict, report.entries) == ("tampered", 12)
    assert len(report.findings) == 100 * 1024 * 1024 // MAX_LINE_BYTES


def test_a_huge_note_is_refused():
    """A checkpoint that is larger than any is refused, however many there are."""
    export = SMALL.export()
    export[at(4) - 1] = CheckpointLine("x" * (MAX_NOTE_BYTES * 4)).line()

    assert said(verify(export, ROOT)) == [("checkpoint", None, None)]


def test_what_follows_the_end_is_refused():
    """The last line is the last, and tells the count and the chain."""
    export = SMALL.export()
    assert said(verify([*export, export[-1], export[-1]], ROOT)) == [("end", None, None)]
    assert said(verify(export[:-1], ROOT)) == [("end", None, None)]
    assert said(verify([*export[:-1], EndLine(11, SMALL.chain(12)).line()], ROOT)) == [("end", None, None)]
    assert said(verify([*export[:-1], EndLine(12, SMALL.chain(11)).line()], ROOT)) == [("chain", None, None)]


def test_a_header_has_to_fit_itself():
    """Numbers, hashes and chain of the first line that do not belong together are refused."""
    header = SMALL.header(4, 8)
    wrong = [
        replace(header, first=9),
        replace(header, first=3),
        replace(header, left=()),
        replace(header, left=(bytes(32),)),
        replace(header, left=(*header.left, bytes(32))),
        replace(header, right=()),
        replace(header, right=(bytes(32),)),
        replace(header, end=13),
        replace(header, end=3),
        replace(header, size=7),
        replace(header, size=13),
        replace(header, size=2**62, end=2**62),
        replace(header, chain=bytes(32)),
        replace(header, note=SMALL.note(8)),
        replace(header, note=""),
        replace(header, certificates=()),
        replace(header, certificates=header.certificates * 200),
        replace(header, certificates=(*header.certificates, b"\x30\x00")),
    ]
    for one in wrong:
        assert verify([one.line(), *SMALL.export(4, 8)[1:]], ROOT).verdict == "tampered"
    whole = SMALL.header()
    assert said(verify([replace(whole, chain=b"\1" * 32).line(), *SMALL.export()[1:]], ROOT))[0] == ("chain", None, None)


SHELF = "d400-2020-11"
KEPT_UNTIL = datetime(2020, 12, 1, tzinfo=UTC) + timedelta(days=400)


def purged_log(recorded: datetime, **changes: object) -> Log:
    """Twelve entries of November, and a purge of the first ten, recorded then."""
    members = {"shelf": SHELF, "first": 0, "last": 9, "count": 10} | changes
    purge = body(12, "audit.purge", recorded=recorded, **members)
    return replace(SMALL, bodies=(*SMALL.bodies, ("d400", purge)))


TEN = range(10)


def ten_years(shelf: str) -> Log:
    """Entries that are to be kept for ten years, and a purge that says that bodies of `shelf` went."""
    log = purged_log(KEPT_UNTIL, shelf=shelf)
    return replace(log, bodies=(*(("d3650", one) for _, one in log.bodies[:12]), log.bodies[12]))


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_ten_years_do_not_pass_for_hundred_days():
    """Whoever empties a shelf too early and gives its bodies out as those of a shorter retention has to change their leaves."""
    export = [line.replace(b'"d3650"', b'"d100"') for line in ten_years("d100-2020-11").export(purged=TEN)]
    report = verify(export, ROOT, clock=ManualClock(NOW))

    assert (report.verdict, said(report)) == ("tampered", [("entry", seq, None) for seq in range(12)])


def test_a_purge_by_the_rules_is_whole():
    """Bodies that went after their time, with an entry that says so, leave the log whole; the report counts them."""
    report = verify(purged_log(KEPT_UNTIL).export(purged=TEN), ROOT)

    assert (report.verdict, report.entries, report.purged) == ("whole", 3, 10)
    assert report.remarks == (f"entry 12: bodies of shelf '{SHELF}' went",)


@pytest.mark.parametrize(
    ("log", "purged", "why"),
    [
        (SMALL, TEN, "no audit.purge entry of this file names it"),
        (SMALL, [3], "no audit.purge entry"),
        (purged_log(KEPT_UNTIL - timedelta(microseconds=1)), TEN, "to be kept until 2022-01-05T00:00:00.000000Z"),
        (purged_log(KEPT_UNTIL, shelf="d400-2020-10"), TEN, "no audit.purge entry"),
        (purged_log(KEPT_UNTIL), [*TEN, 11], "not all of them are among those"),
        (purged_log(KEPT_UNTIL, first=1), TEN, "not all of them are among those"),
        (purged_log(KEPT_UNTIL, count=9), TEN, "counts only 9"),
        (purged_log(KEPT_UNTIL, count="10"), TEN, "no audit.purge entry"),
        (ten_years("d100-2020-11"), TEN, "to be kept until 2030-11-29T00:00:00.000000Z"),
        (ten_years("d3650-2020-11"), TEN, "to be kept until 2030-11-29T00:00:00.000000Z"),
    ],
)
def test_bodies_that_went_against_the_rules_are_a_gap(log: Log, purged: Collection[int], why: str):
    """A body that is gone without an entry that says so, or before its time, is a gap; first and last are named."""
    report = verify(log.export(purged=purged), ROOT, clock=ManualClock(NOW))

    assert (report.verdict, said(report)) == ("gap", [("purge", min(purged), max(purged) if len(purged) > 1 else None)])
    assert why in report.findings[0].why


def test_bodies_are_kept_until_the_clock_of_the_auditor_says_so():
    """Whoever purges before time and dates the entry ahead does not pass: the auditor's own clock decides."""
    export = purged_log(KEPT_UNTIL).export(purged=TEN)

    assert verify(export, ROOT, clock=ManualClock(KEPT_UNTIL)).verdict == "whole"
    early = verify(export, ROOT, clock=ManualClock(KEPT_UNTIL - timedelta(microseconds=1)))
    assert (early.verdict, said(early)) == ("gap", [("purge", 0, 9)])


def test_a_file_of_malformed_lines_does_not_fill_memory():
    """The first thousand malformed lines are told, the others counted; what else is wrong is told as ever."""
    export = SMALL.export()
    export[at(5)] = altered(export[at(5)])
    report = verify([*export[:-1], *[b"\n"] * 1234, export[-1]], ROOT)

    assert said(report) == [("entry", 5, None), *[("line", None, None)] * 1000]
    assert report.remarks == ("234 more lines are malformed",)


def test_a_purge_that_does_not_say_what_went_covers_nothing():
    """Beside a purge that counts right, one with numbers that are none changes nothing."""
    log = purged_log(KEPT_UNTIL)
    more = body(13, "audit.purge", recorded=KEPT_UNTIL, shelf=SHELF, first=-1, last=9, count=-5)

    assert verify(replace(log, bodies=(*log.bodies, ("d400", more))).export(purged=TEN), ROOT).verdict == "whole"


FORMS = {
    "another retention": lambda leaf: leaf.replace(b'"d400"', b'"d1"'),
    "a hash in upper case": lambda leaf: leaf[:9] + leaf[9:73].upper() + leaf[73:],
    "a shorter hash": lambda leaf: leaf[:9] + leaf[10:],
    "an id without dashes": lambda leaf: leaf.replace(b"0000-7000", b"00007000"),
    "another character": lambda leaf: leaf.replace(b'"d400"', '"d４00"'.encode()),
    "a number beyond 2^63": lambda leaf: leaf.replace(b'"seq":5', b'"seq":9223372036854775808'),
    "a line end": lambda leaf: leaf + b"\n",
    "a space": lambda leaf: b" " + leaf,
    "a member more": lambda leaf: leaf[:-1] + b',"x":0}',
    "body twice": lambda leaf: leaf.replace(b'{"body":', b'{"body":"","body":'),
    "number with a zero": lambda leaf: leaf.replace(b'"seq":5', b'"seq":05'),
    "keys in another order": lambda leaf: b'{"retention":"d400","seq":5,' + leaf[1 : leaf.index(b',"retention"')] + b"}",
    "instant of another form": lambda leaf: leaf.replace(b"T00:00:05.000000Z", b"T00:00:05Z"),
    "instant that is none": lambda leaf: leaf.replace(b"2020-11-01T", b"2020-02-30T"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_leaf_of_another_form_is_no_entry(form: Callable[[bytes], bytes]):
    """Even signed, bytes that are not spelled like a leaf are not read: another reader could read something else in them."""
    log = Log.of(12, AUTHORITY)
    log.leaves[5] = form(log.leaves[5])
    assert log.leaves[5] != SMALL.leaves[5]
    report = verify(log.export(), ROOT)

    assert ("entry", 5, None) in said(report)


def test_a_purged_leaf_is_still_in_the_tree():
    """The leaf that stays of a purged entry is proven like any other, also against whoever makes its hash anew."""
    export = purged_log(KEPT_UNTIL).export(purged=TEN)
    leaf = read_line(export[at(5)], 0).leaf.replace(b'"d400"', b'"d100"')
    export[at(5)] = PurgedLine(leaf, leaf_hash(leaf)).line()

    assert [one for one in said(verify(export, ROOT)) if one[0] != "purge"] == [("chain", None, None), ("tree", 4, 7)]
    export[at(5)] = replace(read_line(export[at(5)], 0), leaf_hash=SMALL.hashes[5]).line()
    assert sorted(said(verify(export, ROOT))) == [("entry", 5, None)]


@pytest.mark.parametrize(
    ("members", "verdict"), [({"lost": 0}, "whole"), ({"lost": 5}, "gap"), ({}, "gap"), ({"lost": None}, "gap"), ({"lost": "0"}, "gap")]
)
def test_a_gap_is_one_where_records_were_lost(members: dict, verdict: str):
    """An entry of a gap is only told where nothing was lost, and is a gap where something was, or nobody knows."""
    bodies = (*SMALL.bodies[:3], ("d400", body(3, "audit.gap", **members)), *SMALL.bodies[4:])
    report = verify(replace(SMALL, bodies=bodies).export(), ROOT)

    assert report.verdict == verdict
    assert said(report) == ([] if verdict == "whole" else [("gap", 3, None)])
    assert len(report.remarks) == (verdict == "whole")


def test_the_worst_is_the_verdict():
    """Tampering wins over what could not be checked, and that over a gap."""
    log = replace(SMALL, bodies=(*SMALL.bodies[:9], ("d400", body(9, "audit.gap")), *SMALL.bodies[10:]))
    export = log.export(8)
    assert verify(export, ROOT).verdict == "gap"
    assert verify(export, ROOT, [log.note(3)]).verdict == "unchecked"

    export[1] = altered(export[1])
    assert verify(export, ROOT, [log.note(3)]).verdict == "tampered"


RANGE = purged_log(KEPT_UNTIL)
FILE = b"".join(RANGE.export(7, 13, anchors=[5], purged=[8, 9]))
ANCHORS = [RANGE.note(5), RANGE.note(9)]


def test_the_file_of_mutations_is_whole():
    """The file that is mutated below is whole, with a purge, a proof and anchors."""
    assert verify(lines(io.BytesIO(FILE)), ROOT, ANCHORS).verdict == "whole"


CERTIFICATES = len(b'{"sluice_audit_export":1,"certificates":["'), FILE.index(b'"],"chain"')


@given(st.integers(0, len(FILE) - 1) | st.integers(*CERTIFICATES), st.integers(1, 255) | st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(len(FILE) - 1, 1)
def test_a_file_with_another_byte_is_never_whole(where: int, change: int):
    """Whatever byte of a file is another, it is not whole."""
    mutant = FILE[:where] + bytes([FILE[where] ^ change]) + FILE[where + 1 :]

    assert verify(lines(io.BytesIO(mutant)), ROOT, ANCHORS).verdict != "whole"


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_file_with_lines_moved_is_never_whole(data: st.DataObject):
    """Whatever lines but checkpoints are left out, doubled or exchanged, the file is not whole."""
    export = RANGE.export(3, 13, every=100)
    one, other = data.draw(st.integers(0, len(export) - 1)), data.draw(st.integers(0, len(export) - 1))
    how = data.draw(st.sampled_from(["drop", "double", "swap"]))
    mutant = list(export)
    if how == "drop":
        del mutant[one]
    elif how == "double":
        mutant.insert(other, export[one])
    elif one == other:
        return
    else:
        mutant[one], mutant[other] = mutant[other], mutant[one]

    assert verify(mutant, ROOT).verdict != "whole"


def test_memory_does_not_grow_with_the_notes():
    """Thousands of checkpoints are checked in batches, each found wrong in its place."""
    log = Log.of(600, AUTHORITY)
    wrong = CheckpointLine(checkpoint.sign_note(Checkpoint(log.origin, 300, bytes(32)), AUTHORITY.key)).line()
    export = [line for seq, line in enumerate(log.export(every=1000)) for line in ([line, wrong] if 0 < seq <= 600 else [line])]
    report = verify(export, ROOT)

    assert report.verdict == "tampered"
    assert len(report.findings) == 600
    assert [finding.what for finding in report.findings].count("tree") == 1
