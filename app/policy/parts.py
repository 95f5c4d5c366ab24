"""The shape and types of what a rule answers, checked once when it comes from OPA; whatever is not exactly right is refused.

Rego drops a mistake in silence (`tpm: "30000"` compares greater than any number), so nothing is guessed or converted here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.policy.question import encoded
from app.policy.terms import BUCKETS, DIMENSIONS, MAX_FACTOR, Cost, Deny, Limit, Obligation, Part
from app.policy.unanswered import PolicyInvalid

MAX_LIMIT = 2.0**53 - 1
"""Above it a float no longer holds every whole number, so a limit would be rounded in silence."""


LEAST_LIMIT = 1e-6
"""One request in eleven days, as in a quota."""

LEAST_DAYS, MOST_DAYS = 184, 9999
"""Half a year, which laws ask of logs and the catalogue of models, so that less is a mistake; and the longest class that the log holds."""

MOST_TEXT = 1000


class _Wrong(Exception):
    """Field and problem of one element; `parse` adds the rule."""


def parse(rule: str, outputs: Mapping[str, Any]) -> Part:
    """The checked part of `rule`. Raises PolicyInvalid naming rule and field."""
    found: dict[str, tuple[Any, ...]] = {}
    for output, elements in outputs.items():
        read = OUTPUTS.get(output)
        if read is None:
            raise _invalid(rule, output, f"is no output; rules answer {', '.join(OUTPUTS)}")
        if not isinstance(elements, list):
            raise _invalid(rule, output, f"must be a set (`{output} contains …`), not {_kind(elements)}")
        try:
            found[output] = tuple(read(rule, element) for element in elements)
        except _Wrong as wrong:
            field, problem = wrong.args
            raise _invalid(rule, f"{output}.{field}" if field else output, problem) from None
    return Part(
        rule=rule,
        denies=found.get("deny", ()),
        waives=frozenset(found.get("waive", ())),
        limits=found.get("limit", ()),
        costs=found.get("cost", ()),
        factors=found.get("scale", ()),
        sheds=found.get("shed", ()),
        obligations=found.get("oblige", ()),
        outputs=encoded(outputs),
    )


def _invalid(rule: str, field: str, problem: str) -> PolicyInvalid:
    return PolicyInvalid(f"rule {rule}: {field} {problem}", rule, field=field)


def _deny(rule: str, element: Any) -> Deny:
    fields = _fields(element, required=("code", "message", "status"), optional=("waivable",))
    status = fields["status"]
    if type(status) is not int or not 400 <= status <= 599 or status == 500:
        raise _Wrong("status", f"must be an HTTP status from 400 to 599 other than 500, not {status!r}")
    waivable = fields.get("waivable", False)
    if type(waivable) is not bool:
        raise _Wrong("waivable", f"must be true or false, not {_kind(waivable)}")
    return Deny(rule, _text(fields, "code"), _text(fields, "message"), status, waivable)


def _waive(_: str, element: Any) -> str:
    if not isinstance(element, str) or not element:
        raise _Wrong("", f"must hold codes of denies, not {_kind(element)}")
    return element


def _limit(rule: str, element: Any) -> Limit:
    fields = _fields(element, required=("bucket", "dimension", "limit"), optional=("burst",))
    return Limit(
        rule,
        _one_of(fields, "bucket", BUCKETS),
        _one_of(fields, "dimension", DIMENSIONS),
        _limit_number(fields),
        _number(fields, "burst", 0, MAX_LIMIT) if "burst" in fields else None,
    )


def _limit_number(fields: Mapping[str, Any]) -> float:
    limit = _number(fields, "limit", 0, MAX_LIMIT)
    if 0 < limit < LEAST_LIMIT:
        raise _Wrong("limit", f"must be 0 or at least {LEAST_LIMIT:g}: a bucket that takes longer to fill is closed, so say 0")
    return limit


def _cost(_: str, element: Any) -> Cost:
    fields = _fields(element, required=(), optional=("requests", "input", "output", "cached"))
    return Cost(**{name: _number(fields, name, 0, MAX_LIMIT) for name in fields})


def _scale(_: str, element: Any) -> tuple[str, float]:
    fields = _fields(element, required=("dimension", "factor"))
    return _one_of(fields, "dimension", DIMENSIONS), _number(fields, "factor", 0, MAX_FACTOR)


def _shed(_: str, element: Any) -> float:
    return _number({"": element}, "", 0, 1)


def _oblige(_: str, element: Any) -> Obligation:
    fields = _fields(element, required=("code",), optional=("retention_days", "fields"))
    days = fields.get("retention_days")
    if days is not None and (type(days) is not int or not LEAST_DAYS <= days <= MOST_DAYS):
        raise _Wrong("retention_days", f"must be a whole number of days from {LEAST_DAYS} to {MOST_DAYS}, not {days!r}")
    names = fields.get("fields", [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise _Wrong("fields", "must be a list of names")
    return Obligation(_text(fields, "code"), days, tuple(names))


OUTPUTS: dict[str, Callable[[str, Any], Any]] = {
    "deny": _deny,
    "waive": _waive,
    "limit": _limit,
    "cost": _cost,
    "scale": _scale,
    "shed": _shed,
    "oblige": _oblige,
}
"""What a rule may answer, and who reads one element of it."""


def _fields(element: Any, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    if not isinstance(element, dict):
        raise _Wrong("", f"must hold objects, not {_kind(element)}")
    for name in required:
        if name not in element:
            raise _Wrong(name, "is missing")
    for name in element:
        if name not in required and name not in optional:
            raise _Wrong(name, f"is unknown; expected {', '.join((*required, *optional))}")
    return element


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str) or not value:
        raise _Wrong(name, f"must be a text, not {_kind(value)}")
    if "\x00" in value or len(value) > MOST_TEXT:
        raise _Wrong(name, f"must be a text of at most {MOST_TEXT} characters without U+0000: it goes into answers and the log")
    return value


def _one_of(fields: Mapping[str, Any], name: str, allowed: Sequence[str]) -> str:
    value = fields[name]
    if value not in allowed:
        raise _Wrong(name, f"must be one of {', '.join(allowed)}, not {value!r}")
    return allowed[allowed.index(value)]  # our own text, so that a memo full of limits holds each word once


def _number(fields: Mapping[str, Any], name: str, least: float, most: float) -> float:
    value = fields[name]
    if type(value) not in (int, float):
        raise _Wrong(name, f"must be a number, not {_kind(value)}")
    if not math.isfinite(value) or not least <= value <= most:
        raise _Wrong(name, f"must be from {least:g} to {most:.17g}, not {value!r}")
    return value  # type: ignore[no-any-return]  # its type was looked at two lines above


_KINDS = {"str": "a text", "bool": "a boolean", "int": "a number", "float": "a number", "list": "a list", "dict": "an object"}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value).__name__, "null")
