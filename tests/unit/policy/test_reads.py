"""What rules declare to read, and what is made of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.policy.question import Question, Section
from app.policy.reads import Read, folded, names_of, parse_reads
from app.policy.schema import SECTION_SCHEMAS, question_schema, why_undefined

GOLD = {"id": "a", "sla_class": "gold", "qps": 5}


@pytest.mark.parametrize(
    ("given", "reads"),
    [
        (["tenant"], (Read("tenant"),)),
        (["readings", "tenant.sla_class"], (Read("tenant", ("sla_class",)), Read("readings"))),
        (["tenant.zone", "tenant.region", "tenant.zone"], (Read("tenant", ("region", "zone")),)),
        (["model.sensitive"], (Read("model", ("sensitive",)),)),
    ],
)
def test_names_become_one_read_for_each_section(given: list[str], reads: tuple[Read, ...]) -> None:
    """In the order of the question's sections, fields in order of name, whatever the order in METADATA."""
    assert reads == parse_reads(given, SECTION_SCHEMAS)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "must list sections .tenant, model, "),
        ([], "must list sections"),
        ("tenant", "must list sections"),
        ([1], "must list sections"),
        (["tenants"], "names tenants: must be one of the sections tenant,"),
        (["tenant.sla_clas"], "names tenant.sla_clas: tenant has no such field, only id, zone, sla_class"),
        (["tenant."], "tenant has no such field"),
        (["model.sensitive.roles"], "so write model.sensitive"),
        (["tenant", "tenant.sla_class"], "leave out one of them"),
        (["tenant.sla_class", "tenant.id", "tenant"], "leave out one of them"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(given: Any, says: str) -> None:
    """No list, an unknown section or field, a path that is too deep, a section beside a field of it."""
    with pytest.raises(ValueError, match=says):
        parse_reads(given, SECTION_SCHEMAS)


names = st.sampled_from([name for section in SECTION_SCHEMAS for name in (section, *(f"{section}.{field}" for field in ("a", "b", "c")))])


@given(st.lists(names, min_size=1))
def test_folding_keeps_all_that_any_reads_and_no_more(many: list[str]) -> None:
    """Of a section of three fields, the folded reads show exactly those that one of the reads shows."""
    single = [Read(section, tuple(field)) for section, *field in (name.split(".") for name in many)]
    value = {"a": 1, "b": 2, "c": 3}
    seen: dict[str, dict[str, int]] = {}
    for read in single:
        seen.setdefault(read.section, {}).update(read.of(value))

    assert seen == {read.section: dict(read.of(value)) for read in folded(single)}
    assert folded(folded(single)) == folded(single)


def test_reads_are_named_as_in_metadata() -> None:
    """Sections by their name, fields by their path."""
    assert names_of((Read("tenant", ("region", "zone")), Read("readings"))) == ("tenant.region", "tenant.zone", "readings")


def test_a_part_of_a_section_has_a_key_of_its_own_and_is_made_once() -> None:
    """Two tenants of one class have the same part; the same section gives the same object again."""
    first, second = Section.of(GOLD), Section.of({**GOLD, "id": "b", "qps": 7})
    read = Read("tenant", ("sla_class",))

    assert (first.only(read).value, first.only(read).key) == ({"sla_class": "gold"}, b'{"sla_class":"gold"}')
    assert first.only(read) == second.only(read)
    assert first.only(read) is first.only(read)
    assert first.only(Read("tenant")) is first
    assert Question(tenant=first).part(read) is first.only(read)


def test_a_part_of_a_part_is_itself() -> None:
    """A question that holds only what a group reads can be asked again as it is."""
    read = Read("tenant", ("sla_class", "zone"))
    part = Section.of(GOLD).only(read)

    assert part.only(read) is part


def test_an_absent_field_is_absent() -> None:
    """A tenant without a class shows an empty section, never null."""
    assert Section.of({"id": "a"}).only(Read("tenant", ("sla_class",))).key == b"{}"


def test_a_schema_of_one_field_has_no_other() -> None:
    """What a rule did not declare is not in the schema that it is checked against, and the section allows nothing more."""
    tenant = question_schema(SECTION_SCHEMAS, [Read("tenant", ("sla_class",))])["properties"]["tenant"]

    assert json.dumps(tenant) == json.dumps(
        {"type": "object", "properties": {"sla_class": {"type": "string"}}, "additionalProperties": False}
    )


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("input.tenant.qps", "METADATA custom.reads names only tenant.sla_class; it lacks tenant.qps."),
        ("input.tenant", "METADATA custom.reads names only tenant.sla_class; it lacks tenant."),
        ("input.tenant.sla_clas", "Is sla_class meant?"),
        ("input.model.sensitive.rolls", "Is roles meant?"),
        ("input.readings.live", "METADATA custom.reads lacks readings."),
        ("input.tenants", "Is tenant meant?"),
        ("data.x", ""),
    ],
)
def test_a_reference_that_is_not_declared_is_told_what_is_missing(reference: str, says: str) -> None:
    """A known field that METADATA leaves out, or all but one of a section, a misspelt one, a section that is not read."""
    assert says == why_undefined(reference, SECTION_SCHEMAS, [Read("tenant", ("sla_class",)), Read("model")])
