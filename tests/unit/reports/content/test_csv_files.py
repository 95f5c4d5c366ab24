"""CSV that any program reads back as it was meant, and no spreadsheet runs (RFC 4180; row 67)."""

import csv
import io
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.content.csv_files import ENTRY_COLUMNS, CsvFile, EntriesCsv, guarded, reasons_text, write_decisions
from app.reports.evidence.facts import Logged
from tests.fixtures.night import NOON, NightLog, as_logged, quota, refused, summary

OF_OLDEN_TIMES = NightLog.of(quota("acme", NOON - timedelta(days=9)))


def entries_csv(*entries: Logged) -> bytes:
    stream = io.BytesIO()
    file = EntriesCsv(stream)
    for entry in entries:
        file.entry(entry)
    assert file.rows == len(entries)
    return stream.getvalue()


def rows_of(data: bytes) -> list[list[str]]:
    """As a program of somebody else reads it."""
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def test_night_without_entries_is_a_header() -> None:
    """BOM, one header, CRLF, and no more."""
    header = b"seq,recorded,kind,outcome,operator,tenant,model,subject,purpose,reasons,retention,id,details\r\n"
    assert entries_csv() == b"\xef\xbb\xbf" + header
    stream = io.BytesIO()
    assert write_decisions(stream, OF_OLDEN_TIMES.evidence()) == 0
    assert stream.getvalue() == b"\xef\xbb\xbfhour,tenant,model,outcome,count\r\n"


def test_entry_is_a_row() -> None:
    """Each member of the envelope and of decisions in its column, the others as JSON with sorted keys."""
    entry = as_logged(7, refused(3))
    (_, row) = rows_of(entries_csv(entry))
    found = dict(zip(ENTRY_COLUMNS, row, strict=True))
    details = orjson.loads(found.pop("details"))
    assert found == {
        "seq": "7",
        "recorded": "2026-11-29T04:00:00.000000Z",
        "kind": "sensitive.access",
        "outcome": "refused",
        "operator": "gateway",
        "tenant": "acme",
        "model": "mdl-fin-risk-v3",
        "subject": "p1:" + "a" * 64,
        "purpose": "credit-scoring",
        "reasons": "sensitive_role (sensitive_models)",
        "retention": "d365",
        "id": entry.body["id"],
    }
    assert details == {
        "action": "infer",
        "approval_needed": False,
        "decision_id": "decision-3",
        "policy_revision": "r1",
        "quota_version": 1,
    }


def test_bytes_by_hand() -> None:
    """Commas, quotes and line ends are quoted, quotes doubled; None is empty; the row ends with CRLF."""
    body = {"kind": "k", "outcome": "o", "recorded": "2026-01-01T00:00:00.000000Z", "operator": 'a,"b"', "tenant": "x\r\ny", "id": "i"}
    data = entries_csv(Logged(1, body, "d400"))
    assert data.splitlines(keepends=True)[1:] == [
        b'1,2026-01-01T00:00:00.000000Z,k,o,"a,""b""","x\r\n',
        b'y",,,,,d400,i,\r\n',
    ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠x"])
def test_formula_is_disarmed(text: str) -> None:
    """What a spreadsheet would run gets an apostrophe before it, in every column of text."""
    body = {"kind": "k", "outcome": "o", "recorded": "r", "operator": text, "tenant": text, "model": text, "subject": text, "purpose": text}
    (_, row) = rows_of(entries_csv(Logged(1, body, "d400")))
    assert row[4:9] == [f"'{text}"] * 5


@pytest.mark.parametrize("text", ["", "a=b", "1", "'=1", '"', " =1", "张三"])
def test_other_text_stays_as_it_is(text: str) -> None:
    """Only the first character decides."""
    assert guarded(text) == text


@given(st.lists(st.lists(st.none() | st.integers(0, 9) | st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2)))
def test_every_text_is_read_back(rows: list[list[str | int | None]]) -> None:
    """Another reader finds the cells that were written, disarmed; whatever is in them."""
    stream = io.BytesIO()
    file = CsvFile(stream, ("a", "b"))
    for row in rows:
        file.add(row)
    expected = [["" if cell is None else guarded(str(cell)) for cell in row] for row in rows]
    assert rows_of(stream.getvalue()) == [["a", "b"], *expected]


def test_decisions_by_hour() -> None:
    """Hours in UTC, all minutes of one hour, tenant, model and outcome in one row; unknown tenants empty."""
    hour = datetime(2026, 11, 29, 4, tzinfo=UTC)
    log = NightLog.of(summary(5, hour), summary(6, hour + timedelta(minutes=59)), summary(1, hour, outcome="deny", tenant=None))
    stream = io.BytesIO()
    assert write_decisions(stream, log.evidence()) == 2
    assert sorted(rows_of(stream.getvalue())[1:]) == [
        ["2026-11-29T04:00:00.000000Z", "", "m", "deny", "1"],
        ["2026-11-29T04:00:00.000000Z", "acme", "m", "allow", "11"],
    ]


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        (None, None),
        ([], None),
        ([{"code": "a", "rule": "r"}, {"code": "b"}], "a (r); b"),
        (["a", 3], "a; 3"),
        ("a", "a"),
        ({"x": 1}, '{"x":1}'),
    ],
)
def test_reasons_of_any_form(reasons: object, text: str | None) -> None:
    """Codes with their rules; what has another form is shown and stops nothing."""
    assert reasons_text(reasons) == text
