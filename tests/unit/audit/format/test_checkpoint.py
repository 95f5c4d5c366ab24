"""Checkpoint notes: their text, whose signature counts, and what is refused."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format import checkpoint
from app.audit.format.checkpoint import DASH, MAX_SIGNATURES, Checkpoint, NoteRefused, key_id, open_note, parse_note, sign_note, split_notes
from app.signing.sm2 import PrivateKey

LOG = "01900000-0000-7000-8000-00000000000f"
ORIGIN = f"sluice/{LOG}"
OTHER = "sluice/01900000-0000-7000-8000-000000000010"
HEAD = Checkpoint(ORIGIN, 1234, bytes(range(32)))
KEY, STRANGER = PrivateKey.generate(), PrivateKey.generate()
KEYS = {key_id(ORIGIN, KEY.spki): KEY.public}
NOTE = sign_note(HEAD, KEY)
ROOT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def line(signature: bytes, name: str = ORIGIN) -> str:
    """A signature line."""
    return f"{DASH} {name} {base64.b64encode(signature).decode()}\n"


def signed_by(key: PrivateKey, message: bytes = HEAD.text, origin: str = ORIGIN) -> bytes:
    """What a signature line holds."""
    return key_id(origin, key.spki) + key.sign(message)


def note_of(text: str, *lines: str) -> str:
    """A note with `text` and these signature lines."""
    return f"{text}\n{''.join(lines)}"


def test_the_signed_text_is_three_lines():
    """Origin, size and root, each with its newline, are what is signed."""
    assert HEAD.text.decode() == f"{ORIGIN}\n1234\n{ROOT}\n"
    assert checkpoint.origin_of(LOG) == ORIGIN


def test_a_note_is_its_text_an_empty_line_and_a_signature():
    """A note has the text, an empty line, and one line of dash, name, key id and signature."""
    text, signature = NOTE.split("\n\n")
    dash, name, encoded = signature.split(" ")
    raw = base64.b64decode(encoded)

    assert f"{text}\n".encode() == HEAD.text
    assert (dash, name) == ("\u2014", ORIGIN)
    assert raw[:4] == key_id(ORIGIN, KEY.spki)
    assert KEY.public.verify(raw[4:], HEAD.text)


def test_a_key_id_is_of_name_algorithm_and_key():
    """The id of a key is the beginning of SHA-256 over name, newline, the algorithm's own mark, and the key as SPKI."""
    expected = hashlib.sha256(b"sluice/x\n\xffsm2-sm3-1234567812345678" + b"spki").digest()[:4]

    assert key_id("sluice/x", b"spki") == expected
    assert key_id("sluice/x", b"spki").hex() == "c6153d3f"


def test_what_is_signed_is_opened():
    """A note opens to its checkpoint and the id of the key that signed it."""
    assert open_note(NOTE, ORIGIN, KEYS) == (HEAD, key_id(ORIGIN, KEY.spki))


@pytest.mark.parametrize("size", [0, 1, 2**53 + 1, 2**63 - 1])
def test_sizes_are_exact(size: int):
    """The size survives at any magnitude that the log can have."""
    assert open_note(sign_note(Checkpoint(ORIGIN, size, bytes(32)), KEY), ORIGIN, KEYS)[0].size == size


def test_unknown_keys_are_passed_over():
    """Signatures of keys that nobody told us of, and in other names, neither help nor harm."""
    strangers = [line(signed_by(STRANGER)), line(b"witness and signature", "witness.example"), line(signed_by(KEY), OTHER)]
    note = note_of(HEAD.text.decode(), *strangers, line(signed_by(KEY)))

    assert open_note(note, ORIGIN, KEYS)[0] == HEAD
    with pytest.raises(NoteRefused, match="size 1234 is not signed by a key of this log"):
        open_note(note_of(HEAD.text.decode(), *strangers), ORIGIN, KEYS)


def test_a_known_key_with_a_wrong_signature_refuses_the_note():
    """One wrong signature of a known key refuses a note, even beside a right one."""
    wrong = key_id(ORIGIN, KEY.spki) + KEY.sign(b"something else")
    for lines in ([line(wrong)], [line(signed_by(KEY)), line(wrong)], [line(wrong), line(signed_by(KEY))]):
        with pytest.raises(NoteRefused, match="size 1234 has a signature that is not of what it says"):
            open_note(note_of(HEAD.text.decode(), *lines), ORIGIN, KEYS)


def test_another_log_is_refused():
    """A note that is signed by the same key for another log is refused, and so is its signature under our name."""
    elsewhere = Checkpoint(OTHER, HEAD.size, HEAD.root)
    with pytest.raises(NoteRefused, match=f"a checkpoint of the log '{OTHER}', not of '{ORIGIN}'"):
        open_note(sign_note(elsewhere, KEY), ORIGIN, KEYS)
    with pytest.raises(NoteRefused, match="not of what it says"):
        open_note(note_of(HEAD.text.decode(), line(signed_by(KEY, elsewhere.text))), ORIGIN, KEYS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1234", "1235"),
        ("1234", "01234"),
        ("1234", "+1234"),
        ("1234", " 1234"),
        ("1234", "1_234"),
        ("1234", "-1234"),
        ("1234", "1234.0"),
        ("1234", "١٢٣٤"),
        ("1234", ""),
        ("1234", str(2**63)),
        ("1234", "9" * 5000),
        (ROOT, ROOT[:-2] + "9="),
        (ROOT, ROOT.rstrip("=")),
        (ROOT, ROOT + "="),
        (ROOT, "AAEC"),
        (ROOT, ""),
        (ROOT, ROOT[:4] + "\r" + ROOT[4:]),
        (ROOT, ROOT[:4] + "é" + ROOT[5:]),
        (f"{ROOT}\n", f"{ROOT}\nextension\n"),
        (f"{ORIGIN}\n", "\n"),
        (f"{ORIGIN}\n1234", "1234"),
        ("\n\n", "\n"),
        ("\n\n", "\n\n\n"),
        (f"\n{DASH}", "\n-"),
        (f"\n{DASH} ", f"\n{DASH}  "),
        (f"\n{DASH} ", f"\n{DASH}"),
    ],
)
def test_another_text_is_refused(old: str, new: str):
    """A note that says something else, or says the same in another spelling, is refused."""
    changed = NOTE.replace(old, new, 1)
    assert changed != NOTE

    with pytest.raises(NoteRefused):
        open_note(changed, ORIGIN, KEYS)


@pytest.mark.parametrize(
    "note", ["", "\n", "\n\n", "\n\n\n", f"{ORIGIN}\n0\n{ROOT}\n\n", f"{ORIGIN}\n0\n{ROOT}\n\n\n", "\x00" * 100, f"{ORIGIN}\n\n"]
)
def test_what_is_no_note_is_refused(note: str):
    """Text without the shape of a note is refused."""
    with pytest.raises(NoteRefused):
        parse_note(note)


def test_a_note_cut_anywhere_is_refused():
    """No beginning of a note is a note."""
    for end in range(len(NOTE)):
        with pytest.raises(NoteRefused):
            open_note(NOTE[:end], ORIGIN, KEYS)


@given(st.integers(0, len(NOTE) - 1), st.characters(exclude_categories=["Cs"]))
def test_a_note_with_another_character_is_refused(at: int, other: str):
    """Whatever single character of a note is another, it is refused."""
    changed = NOTE[:at] + other + NOTE[at + 1 :]
    if changed != NOTE:
        with pytest.raises(NoteRefused):
            open_note(changed, ORIGIN, KEYS)


def test_a_note_is_bounded():
    """Notes of more signatures or characters than any checkpoint are refused before anything is verified."""
    many = [line(signed_by(KEY))] * MAX_SIGNATURES
    assert open_note(note_of(HEAD.text.decode(), *many), ORIGIN, KEYS)[0] == HEAD

    with pytest.raises(NoteRefused, match="more than 16 signatures"):
        parse_note(note_of(HEAD.text.decode(), *many, many[0]))
    with pytest.raises(NoteRefused, match="larger than any checkpoint"):
        parse_note(note_of("x" * checkpoint.MAX_NOTE_BYTES))


@pytest.mark.parametrize("signature", [b"", b"\x00" * 4])
def test_a_signature_without_a_signature_is_refused(signature: bytes):
    """A line that holds no more than a key's id is malformed, whoever it names."""
    with pytest.raises(NoteRefused):
        parse_note(note_of(HEAD.text.decode(), line(signature, "witness.example")))


def test_notes_are_found_one_after_the_other():
    """Notes that follow each other, with empty lines or none between, and with the line ends of mail, are found as they were."""
    second = sign_note(Checkpoint(ORIGIN, 1240, bytes(32)), KEY)

    assert split_notes(NOTE) == [NOTE]
    assert split_notes(NOTE + second) == [NOTE, second]
    assert split_notes(f"\n{NOTE}\n\n{second}".rstrip("\n")) == [NOTE, second]
    assert split_notes(f"{NOTE}\n{second}\n".replace("\n", "\r\n")) == [NOTE, second]
    assert split_notes(note_of(HEAD.text.decode(), line(b"witnessed", "w"), line(signed_by(KEY))) + second)[1:] == [second]


@pytest.mark.parametrize(
    "text", ["nonsense", f"{NOTE}nonsense", f"nonsense\n{NOTE}", f"{NOTE} # late\n", NOTE[: NOTE.index(DASH)], f"{NOTE}{NOTE[:60]}"]
)
def test_a_text_with_anything_else_is_not_notes(text: str):
    """A file with anything but notes is refused, so that no anchor is overlooked."""
    with pytest.raises(NoteRefused, match="no checkpoint, but"):
        split_notes(text)


def test_a_file_of_notes_has_room_for_when_they_were_kept():
    """Lines that begin with # stand before, between and after notes, never in one."""
    assert split_notes(f"# kept on 2026-11-30\n\n#\n{NOTE}# and\r\n\r\n{NOTE}# by li") == [NOTE, NOTE]
    with pytest.raises(NoteRefused, match="no checkpoint, but"):
        split_notes(NOTE.replace("\n1234\n", "\n# in it\n1234\n"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        ("\r\n\n", "the file is empty"),
        ("# soon\n", "there is no checkpoint"),
        ('{"note":""}', "Accept: text/plain"),
    ],
)
def test_what_is_kept_by_mistake_is_named(text: str, why: str):
    """A file with nothing in it, or with the JSON that is answered by default, is told as that."""
    with pytest.raises(NoteRefused, match=why):
        split_notes(text)
