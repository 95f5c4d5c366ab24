"""Statements by name."""

import pytest

from app.audit.sequencing.queries import QUERIES, parsed


def test_a_statement_is_found_by_the_name_before_it():
    """What stands between two names is one statement, its description included."""
    named = parsed("-- of all\n\n-- name: one\n-- why\nSELECT 1\n\n-- name: two\nSELECT 2\n")

    assert dict(named) == {"one": b"-- why\nSELECT 1", "two": b"SELECT 2"}


def test_two_statements_of_one_name_are_refused():
    """The second would hide the first."""
    with pytest.raises(ValueError, match="one name"):
        parsed("-- name: one\nSELECT 1\n-- name: one\nSELECT 2\n")


def test_every_statement_says_what_it_is_for():
    """No statement without a line of description."""
    assert [name for name, statement in QUERIES.items() if not statement.startswith(b"-- ")] == []
