"""What pydantic says of a wrong document in our words: one form for settings, catalogue, telemetry, quotas and requests.

A field is named by its path; its value is never repeated, since it may be a secret.
"""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.errors import BadRequest

_MOST_PATH_CHARS = 200  # a path holds keys that the sender chose


def explain(error: ValidationError) -> str:
    """One line for all wrong fields: the path of each and what is wrong with it."""
    return explain_each(error.errors())


def explain_each(details: Iterable[ErrorDetails]) -> str:
    """The same for some of them."""
    return "; ".join(f"{_path(detail['loc']) or 'document'}: {_problem(detail)}" for detail in details)


def bad_field(detail: ErrorDetails, prefix: str = "") -> BadRequest:
    """One wrong field, under `prefix`, as a BadRequest that names it; the hint is that of the check which refused it."""
    field = _path((prefix, *detail["loc"]) if prefix else detail["loc"]) or "body"
    refusal = getattr(detail.get("ctx", {}).get("error"), "__cause__", None)
    hint = refusal.advice if isinstance(refusal, BadRequest) else None
    return BadRequest(f"{field}: {_problem(detail)}", hint=hint, field=field)


def _path(parts: Sequence[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")[:_MOST_PATH_CHARS]


def _problem(detail: ErrorDetails) -> str:
    return detail["msg"].removeprefix("Value error, ")
