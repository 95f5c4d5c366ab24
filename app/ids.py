"""The one rule for names that callers choose: tenants, models, subjects, keys.

An id is Unicode text in NFC, 1 to 128 characters, case-sensitive, with nothing in it that the eye cannot see: two ids that
look alike on a screen must not open two buckets. Full-width letters are other letters; only composition is folded.
"""

import re
import unicodedata
from collections.abc import Callable

from app.errors import BadRequest

ANY_TENANT = "*"  # in a key's tenants; no tenant may bear this name
MAX_ID_CHARS = 128  # fits every header and index, and is longer than any name a person types
_MAX_RAW_CHARS = 4 * MAX_ID_CHARS  # decomposed text shrinks under NFC; nothing longer can become an id

_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Default-ignorable characters that `str.isprintable` lets pass: joiners, fillers and variation selectors."""

_HINT = f"Use 1 to {MAX_ID_CHARS} visible characters without leading or trailing space."


def identifier(text: object, field: str) -> str:
    """`text` as an id in NFC. Raises BadRequest naming `field` for another type, length, `.`, `..` or an invisible character."""
    if not isinstance(text, str):
        raise BadRequest(f"{field}: must be text", hint=_HINT, field=field)
    if len(text) > _MAX_RAW_CHARS:
        raise BadRequest(f"{field}: longer than {MAX_ID_CHARS} characters", hint=_HINT, field=field)
    name = text if text.isascii() else unicodedata.normalize("NFC", text)
    if not 0 < len(name) <= MAX_ID_CHARS:
        raise BadRequest(f"{field}: must have 1 to {MAX_ID_CHARS} characters, has {len(name)}", hint=_HINT, field=field)
    # isprintable is false for control, format, surrogate, private and unassigned characters and for every separator but U+0020.
    if not name.isprintable() or (not name.isascii() and _INVISIBLE.search(name)):
        raise BadRequest(f"{field}: holds a control, zero-width or other invisible character", hint=_HINT, field=field)
    if name[0] == " " or name[-1] == " ":
        raise BadRequest(f"{field}: starts or ends with a space", hint=_HINT, field=field)
    if name in (".", ".."):
        raise BadRequest(f"{field}: `{name}` is a step in a path, not a name", hint=_HINT, field=field)
    return name


def tenant_id(text: object) -> str:
    """A tenant id in NFC. Raises BadRequest with field `tenant`."""
    name = identifier(text, "tenant")
    if name == ANY_TENANT:
        raise BadRequest(f"tenant: `{ANY_TENANT}` stands for all tenants and names none", hint=_HINT, field="tenant")
    return name


def model_id(text: object) -> str:
    """A model id in NFC. Raises BadRequest with field `model`."""
    return identifier(text, "model")


def plain_text(text: object, field: str, most_chars: int) -> str:
    """Free text for the record, such as a reason. Raises BadRequest for U+0000, a lone surrogate or more than `most_chars`."""
    if not isinstance(text, str):
        raise BadRequest(f"{field}: must be text", field=field)
    if len(text) > most_chars:
        raise BadRequest(f"{field}: longer than {most_chars} characters", field=field)
    if "\x00" in text or not _encodable(text):
        raise BadRequest(f"{field}: holds U+0000 or half of a surrogate pair", field=field)
    return text


def words(text: object, field: str, most_chars: int) -> str:
    """Free text that says something. Raises BadRequest as `plain_text` does, and where there is nothing in it to see."""
    told = plain_text(text, field, most_chars)
    if not any(char.isprintable() and char != " " and not _INVISIBLE.match(char) for char in told):
        raise BadRequest(f"{field}: says nothing", hint="Write at least one visible character.", field=field)
    return told


def validator(check: Callable[[str], str]) -> Callable[[str], str]:
    """`check` as a validator of pydantic: a BadRequest would leave the document's shape, a ValueError is told with its place in it."""

    def validate(text: str) -> str:
        try:
            return check(text)
        except BadRequest as refusal:
            raise ValueError(refusal.message.removeprefix(f"{refusal.field}: ")) from refusal

    return validate


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
