"""What pydantic says of a wrong document in our words: one form for settings, catalogue, telemetry, quotas and requests.

A field is named by its path; its value is never repeated, since it may be a secret.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.errors import BadRequest

_MOST_PATH_CHARS = 200  # a path holds keys that the sender chose
_NO_MAPPING = frozenset({"model_type", "dataclass_type"})  # pydantic's own words name the class, which is no word of a document


def explain(error: ValidationError) -> str:
    """One line for all wrong fields: the path of each and what is wrong with it."""
    return explain_each(error.errors())


def explain_each(details: Iterable[ErrorDetails]) -> str:
    """The same for some of them; a name that is a slip of one that is missing is told once, with what it should be."""
    return "; ".join(f"{_path(detail['loc']) or 'document'}: {problem}" for detail, problem in _problems(list(details)))


def _problems(details: Sequence[ErrorDetails]) -> Iterator[tuple[ErrorDetails, str]]:
    missing = {detail["loc"] for detail in details if detail["type"] == "missing"}
    slips: dict[tuple[int | str, ...], tuple[int | str, ...]] = {}
    for *place, name in (detail["loc"] for detail in details if detail["type"] == "extra_forbidden"):
        beside = {str(loc[-1]): loc for loc in missing if list(loc[:-1]) == place}
        for close in get_close_matches(str(name), beside, n=1, cutoff=0.8):
            slips[*place, name] = beside[close]
    for detail in details:
        meant = slips.get(detail["loc"]) if detail["type"] == "extra_forbidden" else None
        if meant:
            yield detail, f"there is no such field; write {meant[-1]}"
        elif detail["type"] != "missing" or detail["loc"] not in slips.values():
            yield detail, _problem(detail)


def bad_field(detail: ErrorDetails, prefix: str = "") -> BadRequest:
    """One wrong field, under `prefix`, as a BadRequest that names it; the hint is that of the check which refused it."""
    field = _path((prefix, *detail["loc"]) if prefix else detail["loc"]) or "body"
    refusal = getattr(detail.get("ctx", {}).get("error"), "__cause__", None)
    hint = refusal.advice if isinstance(refusal, BadRequest) else None
    return BadRequest(f"{field}: {_problem(detail)}", hint=hint, field=field)


def _path(parts: Sequence[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")[:_MOST_PATH_CHARS]


def _problem(detail: ErrorDetails) -> str:
    if detail["type"] in _NO_MAPPING:
        return "must have fields with names, such as `name: value`"
    quotes = "; write it in quotes" if detail["type"] == "string_type" and _lacks_quotes(detail["input"]) else ""
    return detail["msg"].removeprefix("Value error, ") + quotes


def _lacks_quotes(value: Any) -> bool:
    """Whether a text without quotes reads as this: a number, a date, yes or no; or a word in braces, to YAML a field without a value."""
    if isinstance(value, dict):
        return bool(value) and all(each is None for each in value.values())
    return isinstance(value, int | float | date)
