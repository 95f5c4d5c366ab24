"""JSON that every reader understands alike."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api import strict_json
from app.errors import BadRequest, BodyTooLarge, DuplicateKey

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(texts, children, max_size=4),
    max_leaves=20,
)


@given(documents, st.booleans())
def test_ordinary_documents_are_read_as_they_are(document: object, escaped: bool):
    """What a writer of JSON wrote is what is read, escaped or not."""
    assert document == strict_json.loads(json.dumps(document, ensure_ascii=escaped).encode())


@pytest.mark.parametrize("body", [b'{"tenant":"a","tenant":"b"}', b'{"x":{"tenant":1,"tenant":1}}', b'[{"tenant":1,"b":2,"tenant":3}]'])
def test_a_key_twice_is_refused_by_name(body: bytes):
    """A key that stands twice in one object, at any depth, is refused with its name."""
    with pytest.raises(DuplicateKey, match="'tenant'") as refused:
        strict_json.loads(body)

    assert refused.value.field == "tenant"


def test_keys_that_differ_in_spelling_only_are_one_key():
    """An escaped and a plain spelling of a key are the same key."""
    with pytest.raises(DuplicateKey):
        strict_json.loads(b'{"a":1,"\\u0061":2}')


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b'{"n": NaN}', "NaN"),
        (b'{"n": Infinity}', "Infinity"),
        (b'{"n": -Infinity}', "-Infinity"),
        (b'{"n": 1e999}', "1e999"),
        (b'{"n": -1e999}', "-1e999"),
        (b'{"n": 1e-400}', "1e-400"),
        (b'{"n": 1e-99999999999999999999}', "1e-9"),
        (b'{"n": 0e99999999999999999999}', "0e9"),
        (b'{"n": 9007199254740992}', "9007199254740992"),
        (b'{"n": -9007199254740992}', "-9007199254740992"),
        (b'{"n": 18446744073709551617}', "18446744073709551617"),
        (b'{"n": 0.1234567890123456789}', "0.1234567890123456789"),
        (b'{"n": ' + b"9" * 5000 + b"}", "999"),
        (b'{"n": 1.' + b"0" * 5000 + b"}", "1.000"),
    ],
)
def test_numbers_that_would_change_are_refused(body: bytes, what: str):
    """NaN, infinities, and numbers whose digits a double does not keep are refused, never rounded."""
    with pytest.raises(BadRequest, match=what.replace(".", r"\.")):
        strict_json.loads(body)


@pytest.mark.parametrize(
    ("body", "number"),
    [(b"9007199254740991", 2**53 - 1), (b"-9007199254740991", 1 - 2**53), (b"0.1", 0.1), (b"1e2", 100.0), (b"1.50", 1.5)],
)
def test_numbers_that_stay_are_kept(body: bytes, number: float):
    """Integers to 2^53-1 and decimals that a double holds come through."""
    read = strict_json.loads(body)

    assert (type(number), number) == (type(read), read)


@pytest.mark.parametrize("body", [b'"a\\u0000b"', b'"\\ud800"', b'{"\\udfff":1}', b'[["\\ud83d x"]]', b'"\\uDC00\\uD800"'])
def test_text_that_no_log_can_hold_is_refused(body: bytes):
    """U+0000 and halves of surrogate pairs are refused in values and keys."""
    with pytest.raises(BadRequest, match="surrogate"):
        strict_json.loads(body)


@pytest.mark.parametrize(
    ("body", "text"), [(b'"a\\\\u0000b"', "a\\u0000b"), (b'"\\ud83d\\ude00"', "\U0001f600"), (b'"\\\\ud800"', "\\ud800")]
)
def test_text_that_only_looks_like_it_is_kept(body: bytes, text: str):
    """A written-out escape and a whole surrogate pair are ordinary text."""
    assert text == strict_json.loads(body)


def test_depth_is_bounded():
    """64 levels are read, 65 refused, and a thousand refused without exhausting the stack."""
    assert strict_json.loads(b"[" * 64 + b"]" * 64)
    for levels in (65, 1000, 30_000):
        with pytest.raises(BadRequest, match="deeper than 64"):
            strict_json.loads(b"[" * levels + b"]" * levels)


def test_many_shallow_brackets_are_no_depth():
    """A long list of small objects is not deep."""
    assert len(strict_json.loads(b"[" + b",".join([b'{"a":[1]}'] * 1000) + b"]")) == 1000


def test_size_is_bounded():
    """64 KiB are read; one byte more is refused before anything is parsed."""
    assert strict_json.loads(b" " * (64 * 1024 - 1) + b"1") == 1
    with pytest.raises(BodyTooLarge, match="65537 bytes"):
        strict_json.loads(b" " * (64 * 1024) + b"1")


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a"}', b"{'a':1}", b"[1,]", b"nul", b'{"a":1} x', b"\xff", b'"\xed\xa0\x80"', b"\xef\xbb\xbf1", b"01"]
)
def test_what_is_not_json_is_refused(body: bytes):
    """Broken syntax, a byte order mark and bytes that are not UTF-8 are a 400."""
    with pytest.raises(BadRequest, match=r"JSON|UTF-8"):
        strict_json.loads(body)


@given(st.binary(max_size=60))
def test_no_bytes_break_it(body: bytes):
    """Any bytes are read or refused; nothing else happens."""
    with contextlib.suppress(BadRequest):
        strict_json.loads(body)
