"""JSON as every reader after us will understand it, or not at all.

Gateway, policy and log must read the same values, so what JSON readers disagree about is refused: a key twice, NaN,
numbers that a double cannot hold digit for digit, U+0000, half of a surrogate pair.
"""

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

from app.errors import BadRequest, BodyTooLarge, DuplicateKey

MAX_BYTES = 64 * 1024  # a decision needs a few hundred bytes
MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1  # beyond it readers that use doubles change the last digit
_MAX_INTEGER_CHARS = len(str(-MAX_INTEGER))
_MAX_NUMBER_CHARS = 64  # more digits than any double has; longer texts only cost time
_MAX_SHOWN_CHARS = 64  # of a key that is repeated in an error

_SUSPECT_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def loads(body: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """The document in `body`. Raises BadRequest (DuplicateKey, BodyTooLarge) that says what is wrong and where."""
    if len(body) > max_bytes:
        raise BodyTooLarge(f"the body has {len(body)} bytes; at most {max_bytes} are read")
    try:
        document = _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _too_deep() from None
    # Brackets in the text bound the depth, so an ordinary body is never walked.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(document)
    if _SUSPECT_ESCAPE.search(body):
        _check_texts(document)
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise DuplicateKey(f"key {_shown(twice)} stands twice in one object", field=twice[:_MAX_SHOWN_CHARS])
    return document


def _integer(text: str) -> int:
    if len(text) > _MAX_INTEGER_CHARS or not -MAX_INTEGER <= (number := int(text)) <= MAX_INTEGER:
        raise BadRequest(f"number {_shown(text)} is beyond 2^53-1", hint="Send larger values as text, or not at all.")
    return number


def _float(text: str) -> float:
    if not _is_exact(text):
        raise BadRequest(f"number {_shown(text)} cannot be kept exactly", hint="Send at most 15 significant digits within 1e±300.")
    return float(text)


def _is_exact(text: str) -> bool:
    number = float(text)
    try:
        return len(text) <= _MAX_NUMBER_CHARS and abs(number) != float("inf") and Decimal(repr(number)) == Decimal(text)
    except ArithmeticError:  # an exponent beyond what decimals have
        return False


def _constant(text: str) -> NoReturn:
    raise BadRequest(f"{text} is not JSON", hint="Leave out what is not known.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "…")


def _too_deep() -> BadRequest:
    return BadRequest(f"the body nests deeper than {MAX_DEPTH} levels")


def _check_depth(document: Any) -> None:
    containers = [document]
    for _ in range(MAX_DEPTH):
        children = [child for node in containers for child in (node.values() if isinstance(node, dict) else node)]
        containers = [child for child in children if isinstance(child, dict | list)]
        if not containers:
            return
    raise _too_deep()


def _check_texts(document: Any) -> None:
    waiting = [document]
    while waiting:
        match waiting.pop():
            case str() as text if "\x00" in text or not _whole(text):
                raise BadRequest(
                    f"text {_shown(text)} holds U+0000 or half of a surrogate pair", hint="Send whole characters, without U+0000."
                )
            case dict() as node:
                waiting += [*node.keys(), *node.values()]
            case list() as node:
                waiting += node


def _whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
