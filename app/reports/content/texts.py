"""All texts of the templates, for the check that the font has every character of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from app.reports.clauses import judging
from app.reports.clauses.clause import VERDICTS
from app.reports.clauses.loading import Clauses
from app.reports.clauses.measures import MEASURES
from app.reports.content.register import Register
from app.reports.content.wording import clauses as clause_wording
from app.reports.content.wording import cover, gdpr, integrity, sections, terms

WORDING: tuple[ModuleType, ...] = (clause_wording, cover, gdpr, integrity, sections, terms)
"""All that a page says by itself is a constant of one of these."""


def template_texts(clauses: Clauses, register: Register) -> Iterator[str]:
    """Each text that a night's report can have beside data from the log."""
    yield from constants(*WORDING, judging)
    yield from _texts([VERDICTS, clauses, register, [each.label for each in MEASURES.values()]])


def constants(*modules: ModuleType) -> Iterator[str]:
    """Each text in the constants of these modules."""
    for module in modules:
        yield from _texts([value for name, value in vars(module).items() if name.lstrip("_").isupper()])


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value.values()])
    elif isinstance(value, BaseModel):
        yield from _texts([getattr(value, name) for name in type(value).model_fields])
    elif is_dataclass(value):
        yield from _texts([getattr(value, each.name) for each in fields(value)])
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
