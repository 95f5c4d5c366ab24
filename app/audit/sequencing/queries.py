"""The statements of queries.sql by name. Each stands there with what it is for."""

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def parsed(text: str) -> Mapping[str, bytes]:
    """The statements of `text` by the name in the comment before each, as psycopg takes them. Raises ValueError for a name given twice."""
    _, *parts = _NAME.split(text)
    named = dict(zip(parts[::2], (part.strip().encode() for part in parts[1::2]), strict=True))
    if len(named) * 2 != len(parts):
        raise ValueError("two statements have one name")
    return MappingProxyType(named)


QUERIES = parsed(resources.files(__package__).joinpath("queries.sql").read_text("utf-8"))
