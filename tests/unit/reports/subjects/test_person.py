"""Whom a report is about."""

from pathlib import Path

import pytest

from app.audit.people.pseudonyms import Pseudonyms
from app.errors import BadRequest
from app.reports.subjects.person import Person


def test_a_person_is_named_in_one_way():
    """A subject by tenant and id, an operator by name, a tenant by itself."""
    assert Person.of("acme", "bea", None) == Person("subject", "acme", "bea")
    assert Person.of("acme", None, None) == Person("tenant", "acme", "acme")
    assert Person.of(None, None, "cli:root") == Person("operator", None, "cli:root")


@pytest.mark.parametrize("names", [(None, None, None), (None, "bea", None), ("acme", "bea", "cli:root"), ("acme", None, "cli:root")])
def test_anything_else_names_nobody(names: tuple[str | None, ...]):
    """Too few names, or too many, are refused with what to give."""
    with pytest.raises(BadRequest, match="name one person"):
        Person.of(*names)


def test_ids_are_exact():
    """Composed and decomposed letters are one id; case and full-width letters make others."""
    assert Person.of("acme", "Ame\u0301lie", None) == Person.of("acme", "Amélie", None)
    assert Person.of("acme", "Bea", None) != Person.of("acme", "bea", None)
    assert Person.of("acme", "\uff42ea", None) != Person.of("acme", "bea", None)


def test_persons_of_one_name_have_different_pseudonyms(tmp_path: Path):
    """As subject of two tenants, as operator and as tenant somebody stands under unlinked pseudonyms."""
    pseudonyms = Pseudonyms(tmp_path)
    persons = [Person.of("acme", "x", None), Person.of("x", "x", None), Person.of(None, None, "x"), Person.of("x", None, None)]

    assert len({person.pseudonym(pseudonyms) for person in persons}) == 4


def test_a_search_asks_the_body_again():
    """What a column says is not enough: pseudonym, tenant and operator must be in the body."""
    subject, tenant, operator = (
        Person.of(*names).search("p1:x").says for names in (("acme", "bea", None), ("acme", None, None), (None, None, "anna"))
    )

    assert [subject({"tenant": "acme", "subject": one}) for one in ("p1:x", "p1:X", None)] == [True, False, False]
    assert [tenant({"tenant": "acme", "subject": one}) for one in ("p1:x", "p1:X", None)] == [True, False, True]
    assert [operator({"operator": one}) for one in ("anna", "Anna", "sluice")] == [True, False, False]
    assert operator({"operator": "cli:root", "use": "api", "after": {"name": "anna"}})
    assert not operator({"operator": "cli:root", "use": "api", "after": {"name": "bob", "tenants": ["anna"]}})
