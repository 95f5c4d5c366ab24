"""Ids that callers choose."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.ids import model_id, plain_text, tenant_id, words


@pytest.mark.parametrize("text", ["tenant-prod-a", "a/b", "..a", "a b", "Ω", "ß", "租户", "a?b#c", "a\u0301e"])
def test_visible_text_is_an_id(text: str):
    """Any visible text of 1 to 128 characters is an id, slashes and CJK included."""
    assert unicodedata.normalize("NFC", text) == tenant_id(text)


def test_composed_and_decomposed_are_one_id():
    """`café` written with one or two code points is the same tenant."""
    assert "caf\u00e9" == tenant_id("cafe\u0301") == tenant_id("caf\u00e9")


@pytest.mark.parametrize(("one", "other"), [("ß", "SS"), ("a", "A"), ("a", "\uff41")])
def test_case_and_width_make_other_ids(one: str, other: str):
    """Ids are case-sensitive, and full-width letters are other letters."""
    assert tenant_id(one) != tenant_id(other)


@pytest.mark.parametrize(
    "text",
    [
        *("", " a", "a ", "a\tb", "a\x00b", "a\u200bb", "a\ufeff", "a\u202eb", "a\u2060b", "a\u00adb", "a\u00a0b", "a\u3000b"),
        *("\ud800", "a\u034fb", "a\u3164b", "a\ufe0fb", "\ue000", ".", "..", "*", "a" * 129, "a" * 300, 7, None, ["a"]),
    ],
)
def test_what_the_eye_cannot_tell_is_refused(text: object):
    """Control, zero-width, format, surrogate, private and edge-space characters, path steps and other types are a 400 on `tenant`."""
    with pytest.raises(BadRequest) as refused:
        tenant_id(text)

    assert refused.value.field == "tenant"


def test_length_counts_composed_characters():
    """128 decomposed characters are 128, not 256."""
    assert tenant_id("e\u0301" * 128) == "\u00e9" * 128
    with pytest.raises(BadRequest, match="has 129"):
        tenant_id("e\u0301" * 129)


@given(st.text(max_size=200))
def test_an_accepted_id_is_stable(text: str):
    """An id read again is the same id, so nothing is renamed on the way."""
    try:
        name = model_id(text)
    except BadRequest:
        return

    assert name == model_id(name) == unicodedata.normalize("NFC", name)
    assert name.isprintable()


def test_free_text_keeps_escapes_and_refuses_what_no_log_can_hold():
    """The six characters backslash-u-0000 are text; the character U+0000 and half a pair are a 400 naming the field."""
    assert plain_text("a\\u0000b", "reason", 20) == "a\\u0000b"
    for text in ("a\x00b", "\ud800", "a" * 21, 7):
        with pytest.raises(BadRequest, match="reason"):
            plain_text(text, "reason", 20)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b\u2060", "\u3164", "\ufe0f", "\u202e", "\u3000"])
def test_words_say_something(text: str):
    """A reason in which the eye sees nothing is none; one visible character, in whatever company, is one."""
    with pytest.raises(BadRequest, match="reason: says nothing"):
        words(text, "reason", 20)
    assert words(f"{text}租{text}", "reason", 20) == f"{text}租{text}"
