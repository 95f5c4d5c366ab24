"""The report for one person as JSON and CSV, and as a document."""

import csv
import io
import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format.checkpoint import Checkpoint, sign_note
from app.audit.people.subject_keys import KeptKey, SubjectKey
from app.audit.reading.checkpoints import SignedCheckpoint
from app.audit.reading.proven import Closing
from app.reports.document import Document, Facts, Paragraph, Table, Words
from app.reports.layout.font import Font
from app.reports.subjects.answer import Answer, Responsible, Summary
from app.reports.subjects.binding import laid_out, wording_texts
from app.reports.subjects.files import EntriesCsv, JsonFile
from app.reports.subjects.pages import document, row
from app.reports.subjects.person import Person
from app.reports.subjects.view import Shown, Texts
from app.signing.sm2 import PrivateKey
from tests.fixtures.entries import AT
from tests.fixtures.pdf_text import text_of
from tests.fixtures.report_content import whole_text

KEPT = KeptKey(AT, SubjectKey(UUID(int=1), bytes(32)))
ORIGIN = "sluice/00000000-0000-0000-0000-000000000001"
NOTE = sign_note(Checkpoint(ORIGIN, 7, bytes(32)), PrivateKey.generate())
ANSWER = Answer(
    id="a1",
    made=AT,
    person=Person("subject", "acme", "bea"),
    pseudonym="p1:x",
    legal_basis="GDPR Art. 15",
    request=None,
    closing=Closing(SignedCheckpoint(7, NOTE, AT), [b"der"]),
    key=KEPT,
    held={"registry.approval": 2},
    by=Responsible(),
)
ENTRY = Shown(
    5, "2026-01-31T10:00:00.000000Z", "sensitive.access", "refused", "operator #1", "acme", {}, Texts(), "d730", "2028-01-31", "{}", ()
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)


def entry(number: int = 5, purpose: str = "credit", **members: object) -> Shown:
    return replace(ENTRY, seq=number, members=members, texts=Texts({"purpose": purpose}))


def written(*entries: Shown) -> tuple[dict, list[list[str]]]:
    """What JSON and CSV say."""
    json_stream, csv_stream, summary = io.BytesIO(), io.BytesIO(), Summary()
    json_file, csv_file = JsonFile(json_stream, ANSWER), EntriesCsv(csv_stream)
    for one in entries:
        summary.add(one)
        json_file.add(one)
        csv_file.entry(one)
    json_file.end(summary)
    return json.loads(json_stream.getvalue()), list(csv.reader(io.StringIO(csv_stream.getvalue().decode("utf-8-sig"), newline="")))


def test_nobody_is_promised_an_erasure_that_there_is_not():
    """What a person is told of erasure, in JSON and PDF, is what the nightly report says of it: that there is none yet, and who answers."""
    told, _ = written()
    [said] = [
        text for one in blocks(ANSWER, Summary()).blocks if isinstance(one, Facts) for label, text in one.pairs if "(e)" in str(label)
    ]

    assert isinstance(said, Words)
    assert "Erasure is not available in this version: a request for it is recorded, and a person answers it" in said.en
    assert "此版本尚不能删除" in said.zh
    assert told["told"]["rights"] == said.en


@given(st.lists(texts, max_size=5))
def test_whatever_people_write_is_read_back(purposes: list[str]):
    """JSON has every entry with the texts as they are, CSV a row for each; none and many alike."""
    said, rows = written(*(entry(number, purpose) for number, purpose in enumerate(purposes)))

    assert [one["texts"]["purpose"] for one in said["entries"]] == purposes
    assert (said["count"], len(rows)) == (len(purposes), len(purposes) + 1)
    assert [row[0] for row in rows[1:]] == [str(number) for number in range(len(purposes))]


def test_the_head_says_whose_and_the_end_how_much():
    """Person, checkpoint, counts by kind and class, and what is kept beside the log."""
    said, _ = written(entry(1), entry(2))

    assert (said["person"]["id"], said["log"]["size"], said["log"]["note"]) == ("bea", 7, NOTE)
    assert said["kinds"] == [{"kind": "sensitive.access", "outcome": "refused", "count": 2}]
    assert (said["retention"], said["texts"]["opened"]) == ({"d730": 2}, 2)
    assert said["outside_the_log"]["registry"] == {"registry.approval": 2}


def test_a_line_says_what_decided():
    """Reasons with their rules, refusals that were lifted, and what is hidden and why; the person's own id is on the cover."""
    reasons, waived = (
        [{"code": "sensitive_role", "rule": "sensitive_models"}, {"code": "closed", "rule": None}],
        [{"code": "x", "rule": "y"}],
    )
    told = replace(
        entry(reasons=reasons, waived=waived, model="m", count=3),
        texts=Texts({"purpose": "credit", "subject": "bea"}, erased=("action",), withheld=("reason",)),
    )

    assert row(told)[3:5] == (
        "m\ncredit",
        "sensitive_role (sensitive_models); closed (sluice); waived x (y); count 3; erased: action; withheld: reason",
    )


def blocks(answer: Answer, summary: Summary, rows: list = []) -> Document:  # noqa: B006 - never changed
    return document(answer, summary, rows, root=None)


def test_lines_that_do_not_stand_here_are_counted():
    """The table says how many there are where it has not all; where it has, it says nothing."""
    summary = Summary(entries=3)
    tables = [
        [one for one in blocks(ANSWER, summary, rows).blocks if isinstance(one, Table)][-1] for rows in ([("",) * 7], [("",) * 7] * 3)
    ]

    assert [table.total for table in tables] == [3, None]


@pytest.mark.parametrize(
    ("key", "summary", "said"),
    [
        (None, Summary(), "There is no key of this person"),
        (KEPT, Summary(), "A key of this person is kept, made at 2026-01-02T03:04:05.000006Z."),
        (KeptKey(AT, None), Summary(), "is damaged"),
        (None, Summary(erased=2, erased_at="2026-02-03T00:00:00.000000Z"), "Erased on 2026-02-03T00:00:00.000000Z: the key was destroyed"),
        (None, Summary(erased=2), "no entry says when and why"),
    ],
    ids=["none", "kept", "damaged", "erased", "missing"],
)
def test_how_the_key_stands_is_said(key: KeptKey | None, summary: Summary, said: str):
    """Never had one, kept, damaged, destroyed by an erasure, gone without one: five different sentences."""
    texts = [
        one.text.en
        for one in blocks(replace(ANSWER, key=key), summary).blocks
        if isinstance(one, Paragraph) and isinstance(one.text, Words)
    ]

    assert any(said in text for text in texts)


def test_a_signed_report_says_how_to_check_it():
    """Three commands and the fingerprint of the root, in place of the warning that it is not signed."""
    signed = document(ANSWER, Summary(), [], root="ab" * 32)
    facts = [one for one in signed.cover if isinstance(one, Facts)]

    assert any(isinstance(one, Paragraph) and one.style == "warning" for one in blocks(ANSWER, Summary()).cover)
    assert not any(isinstance(one, Paragraph) and one.style == "warning" for one in signed.cover)
    assert facts[-1].pairs[0][1] == "ab" * 32


def test_every_character_is_of_the_wording_or_of_the_data():
    """The list that the font is checked with has every character that a report with data in ASCII prints, whoever it is for."""
    listed = {char for text in wording_texts() for char in text} | set(NOTE)
    for role in ("subject", "operator", "tenant"):
        for root in (None, "ab" * 32):
            one = document(replace(ANSWER, person=replace(ANSWER.person, role=role)), Summary(), [row(ENTRY)], root=root)
            assert {char for char in whole_text(one) if not char.isascii()} - listed == set()


def test_equal_answers_are_equal_bytes(report_font: Font):
    """The only time in the PDF is when it was made; another time is another file. The font has every character of the wording."""
    one = blocks(ANSWER, Summary(), [])
    later = blocks(replace(ANSWER, made=AT + timedelta(seconds=1)), Summary(), [])

    assert laid_out(one, report_font) == laid_out(one, report_font) != laid_out(later, report_font)
    assert "[U+" not in text_of(laid_out(one, report_font))
