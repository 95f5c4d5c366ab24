"""The table of kinds."""

import ast
from pathlib import Path

import app
from app.audit.records.kinds import ENVELOPE, KINDS, MEMBERS


def test_members_of_kinds_are_explained():
    """Every member that a kind has is explained once, and nothing is explained that no kind has."""
    used = frozenset[str]().union(*(kind.required | kind.optional for kind in KINDS.values()))

    assert set(MEMBERS) == used
    assert not set(MEMBERS) & set(ENVELOPE)


def test_a_member_is_required_or_optional():
    """No kind has a member twice, and each kind can end somehow."""
    assert [name for name, kind in KINDS.items() if kind.required & kind.optional or not kind.outcomes] == []


def test_names_of_members_are_ascii_words():
    """Members are keys of canonical JSON, which sorts the same everywhere only for ASCII."""
    assert [name for name in (*MEMBERS, *ENVELOPE, *KINDS) if not name.isascii() or not name.replace(".", "_").isidentifier()] == []


def test_no_kind_is_written_that_is_not_listed():
    """Every call that makes an entry names a kind of the table."""
    calls = [
        node
        for path in Path(app.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "make_entry" and node.args
    ]
    named = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}

    assert named
    assert named <= set(KINDS)
