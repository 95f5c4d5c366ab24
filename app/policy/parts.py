"""The shape and types of what a rule answers to a request's question, checked once when it comes from OPA."""

from collections.abc import Mapping
from typing import Any

from app.policy.elements import Reader, Wrong, fields_of, kind_of, number, one_of, read_outputs, text
from app.policy.question import encoded
from app.policy.terms import BUCKETS, DIMENSIONS, MAX_FACTOR, Cost, Deny, Limit, Obligation, Part

MAX_LIMIT = 2.0**53 - 1
"""Above it a float no longer holds every whole number, so a limit would be rounded in silence."""


LEAST_LIMIT = 1e-6
"""One request in eleven days, as in a quota."""

LEAST_DAYS, MOST_DAYS = 184, 9999
"""Half a year, which laws ask of logs and the catalogue of models, so that less is a mistake; and the longest class that the log holds."""


def parse(rule: str, outputs: Mapping[str, Any]) -> Part:
    """The checked part of `rule`. Raises PolicyInvalid naming rule and field."""
    found = read_outputs(rule, outputs, OUTPUTS)
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


def _deny(rule: str, element: Any) -> Deny:
    fields = fields_of(element, required=("code", "message", "status"), optional=("waivable",))
    status = fields["status"]
    if type(status) is not int or not 400 <= status <= 599 or status == 500:
        raise Wrong("status", f"must be an HTTP status from 400 to 599 other than 500, not {status!r}")
    waivable = fields.get("waivable", False)
    if type(waivable) is not bool:
        raise Wrong("waivable", f"must be true or false, not {kind_of(waivable)}")
    return Deny(rule, text(fields, "code"), text(fields, "message"), status, waivable)


def _waive(_: str, element: Any) -> str:
    if not isinstance(element, str) or not element:
        raise Wrong("", f"must hold codes of denies, not {kind_of(element)}")
    return element


def _limit(rule: str, element: Any) -> Limit:
    fields = fields_of(element, required=("bucket", "dimension", "limit"), optional=("burst",))
    return Limit(
        rule,
        one_of(fields, "bucket", BUCKETS),
        one_of(fields, "dimension", DIMENSIONS),
        _limit_number(fields),
        number(fields, "burst", 0, MAX_LIMIT) if "burst" in fields else None,
    )


def _limit_number(fields: Mapping[str, Any]) -> float:
    limit = number(fields, "limit", 0, MAX_LIMIT)
    if 0 < limit < LEAST_LIMIT:
        raise Wrong("limit", f"must be 0 or at least {LEAST_LIMIT:g}: a bucket that takes longer to fill is closed, so say 0")
    return limit


def _cost(_: str, element: Any) -> Cost:
    fields = fields_of(element, required=(), optional=("requests", "input", "output", "cached"))
    return Cost(**{name: number(fields, name, 0, MAX_LIMIT) for name in fields})


def _scale(_: str, element: Any) -> tuple[str, float]:
    fields = fields_of(element, required=("dimension", "factor"))
    return one_of(fields, "dimension", DIMENSIONS), number(fields, "factor", 0, MAX_FACTOR)


def _shed(_: str, element: Any) -> float:
    return number({"": element}, "", 0, 1)


def _oblige(_: str, element: Any) -> Obligation:
    fields = fields_of(element, required=("code",), optional=("retention_days", "fields"))
    days = fields.get("retention_days")
    if days is not None and (type(days) is not int or not LEAST_DAYS <= days <= MOST_DAYS):
        raise Wrong("retention_days", f"must be a whole number of days from {LEAST_DAYS} to {MOST_DAYS}, not {days!r}")
    names = fields.get("fields", [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise Wrong("fields", "must be a list of names")
    return Obligation(text(fields, "code"), days, tuple(names))


OUTPUTS: dict[str, Reader] = {
    "deny": _deny,
    "waive": _waive,
    "limit": _limit,
    "cost": _cost,
    "scale": _scale,
    "shed": _shed,
    "oblige": _oblige,
}
"""What a rule may answer, and who reads one element of it."""
