"""What rules declare to read of a question: whole sections, or single fields of one.

A rule is shown what it declares and nothing else, is compiled against that alone, and its answers are kept under that alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Read:
    """A section, or `fields` of it: in order of name, without any all of the section."""

    section: str
    fields: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """As METADATA writes it, for example ("tenant",) or ("tenant.region", "tenant.sla_class")."""
        return tuple(f"{self.section}.{field}" for field in self.fields) or (self.section,)

    def of(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is read of the section's value; a field that is absent stays absent."""
        return {field: value[field] for field in self.fields if field in value} if self.fields else value


def names_of(reads: Iterable[Read]) -> tuple[str, ...]:
    """All names, as METADATA writes them."""
    return tuple(name for read in reads for name in read.names)


def folded(reads: Iterable[Read]) -> tuple[Read, ...]:
    """One for each section, by its first appearance: all fields that any of them reads, or the whole where one reads that."""
    fields: dict[str, set[str]] = {}
    whole = set()
    for read in reads:
        fields.setdefault(read.section, set()).update(read.fields)
        if not read.fields:
            whole.add(read.section)
    return tuple(Read(section, () if section in whole else tuple(sorted(found))) for section, found in fields.items())


def parse_reads(given: Any, schemas: Mapping[str, Mapping[str, Any]]) -> tuple[Read, ...]:
    """`custom.reads` of METADATA, in the order of `schemas`, which has the JSON Schema of each section. Raises ValueError saying what is wrong."""
    if not isinstance(given, list) or not given or not all(isinstance(name, str) for name in given):
        raise ValueError(f"must list sections ({', '.join(schemas)}), or fields of one such as {_example(schemas)}")
    reads = [_read(name, schemas) for name in given]
    for read in reads:
        if read.fields and Read(read.section) in reads:
            raise ValueError(f"names {read.section} and {read.names[0]}: the section has the field in it, so leave out one of them")
    return tuple(sorted(folded(reads), key=lambda read: list(schemas).index(read.section)))


def _read(name: str, schemas: Mapping[str, Mapping[str, Any]]) -> Read:
    section, *path = name.split(".")
    if section not in schemas:
        raise ValueError(f"names {name}: must be one of the sections {', '.join(schemas)}, or a field of one")
    if len(path) > 1:
        raise ValueError(f"names {name}: a section or one field of it can be read, so write {section}.{path[0]}")
    fields = schemas[section]["properties"]
    if path and path[0] not in fields:
        raise ValueError(f"names {name}: {section} has no such field, only {', '.join(fields)}")
    return Read(section, tuple(path))


def _example(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    section, schema = next(iter(schemas.items()))
    return f"{section}.{next(iter(schema['properties']))}"
