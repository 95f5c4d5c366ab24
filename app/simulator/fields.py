"""Reading the small JSON bodies of the stand-in's controls; each error names the field."""

from collections.abc import Collection
from typing import Any

import orjson


def document(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises ValueError."""
    parsed = orjson.loads(body)  # its error is a ValueError
    if not isinstance(parsed, dict):
        raise ValueError("body: expected a JSON object")  # noqa: TRY004 - the sender's fault, as a bad field is
    return parsed


def only(known: Collection[str], document: dict[str, Any]) -> None:
    """Raises ValueError naming a field that is not one of these: one that did nothing would mislead whoever sent it."""
    for name in document:
        if name not in known:
            raise ValueError(f"{name}: no such field; expected {', '.join(known)}")


def number(document: dict[str, Any], name: str, default: Any, most: float) -> Any:
    """A number from 0 to `most`, or the default where the field is absent or null. Raises ValueError naming the field."""
    value = document.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"{name}: expected a number from 0 to {most:g}")
    return float(value)


def whole(document: dict[str, Any], name: str, most: int) -> int:
    """A whole number from 1 to `most`, which must be there. Raises ValueError naming the field."""
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name}: expected a whole number from 1 to {most}")
    return value
