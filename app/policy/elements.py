"""Reading what a rule answers, element by element; whatever is not exactly right is refused.

Rego drops a mistake in silence (`tpm: "30000"` compares greater than any number), so nothing is guessed or converted here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.policy.unanswered import PolicyInvalid

MOST_TEXT = 1000

Reader = Callable[[str, Any], Any]
"""Makes a value of a rule's name and one element of one output. Raises Wrong."""


class Wrong(Exception):
    """Field and problem of one element; `read_outputs` adds the rule."""


def read_outputs(rule: str, outputs: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, tuple[Any, ...]]:
    """The checked elements of each output that `rule` answered. Raises PolicyInvalid naming rule and field."""
    found: dict[str, tuple[Any, ...]] = {}
    for output, elements in outputs.items():
        read = readers.get(output)
        if read is None:
            raise _invalid(rule, output, f"is no output; rules answer {', '.join(readers)}")
        if not isinstance(elements, list):
            raise _invalid(rule, output, f"must be a set (`{output} contains …`), not {kind_of(elements)}")
        try:
            found[output] = tuple(read(rule, element) for element in elements)
        except Wrong as wrong:
            field, problem = wrong.args
            raise _invalid(rule, f"{output}.{field}" if field else output, problem) from None
    return found


def _invalid(rule: str, field: str, problem: str) -> PolicyInvalid:
    return PolicyInvalid(f"rule {rule}: {field} {problem}", rule, field=field)


def fields_of(element: Any, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """The element, an object with all of the required fields and none that is in neither list."""
    if not isinstance(element, dict):
        raise Wrong("", f"must hold objects, not {kind_of(element)}")
    for name in required:
        if name not in element:
            raise Wrong(name, "is missing")
    for name in element:
        if name not in required and name not in optional:
            raise Wrong(name, f"is unknown; expected {', '.join((*required, *optional))}")
    return element


def text(fields: Mapping[str, Any], name: str) -> str:
    """A text that may stand in answers and the log."""
    value = fields[name]
    if not isinstance(value, str) or not value:
        raise Wrong(name, f"must be a text, not {kind_of(value)}")
    if "\x00" in value or len(value) > MOST_TEXT:
        raise Wrong(name, f"must be a text of at most {MOST_TEXT} characters without U+0000: it goes into answers and the log")
    return value


def one_of(fields: Mapping[str, Any], name: str, allowed: Sequence[str]) -> str:
    """One of the texts in `allowed`."""
    value = fields[name]
    if value not in allowed:
        raise Wrong(name, f"must be one of {', '.join(allowed)}, not {value!r}")
    return allowed[allowed.index(value)]  # our own text, so that a memo full of limits holds each word once


def number(fields: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """A finite number within the bounds."""
    value = fields[name]
    if type(value) not in (int, float):
        raise Wrong(name, f"must be a number, not {kind_of(value)}")
    if not math.isfinite(value) or not least <= value <= most:
        raise Wrong(name, f"must be from {least:g} to {most:.17g}, not {value!r}")
    return value  # type: ignore[no-any-return]  # its type was looked at two lines above


_KINDS = {"str": "a text", "bool": "a boolean", "int": "a number", "float": "a number", "list": "a list", "dict": "an object"}


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value).__name__, "null")
