"""Ids in paths: routed as they were sent, decoded afterwards.

A server decodes `/quotas/a%2Fhistory` into `/quotas/a/history` before routing, which would answer for another tenant. These
routes match the path as it was sent, where an encoded slash is part of one segment, and decode each segment once.
"""

from typing import Any
from urllib.parse import quote, unquote_to_bytes

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from app.errors import BadRequest


class EncodedPathRoute(APIRoute):
    """A route whose path parameters may hold any character, percent-encoded: `APIRouter(route_class=EncodedPathRoute)`."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As any route, but on the undecoded path. Raises BadRequest where a matching path is not percent-encoded UTF-8."""
        match, child = super().matches({**scope, "path": _as_sent(scope)})
        if match is not Match.NONE:
            child["path_params"] = {name: _decoded(name, value) for name, value in child["path_params"].items()}
        return match, child


def _as_sent(scope: Scope) -> str:
    raw = scope.get("raw_path")  # optional in ASGI
    return quote(scope["path"]) if raw is None else raw.decode("latin-1")


def _decoded(name: str, value: Any) -> str:
    if any(not _is_escape(value, at) for at in range(len(value)) if value[at] == "%"):
        raise BadRequest(f"{name}: a % in the path is not followed by two hexadecimal digits", field=name)
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise BadRequest(f"{name}: not percent-encoded UTF-8", field=name) from None


def _is_escape(value: str, at: int) -> bool:
    digits = value[at + 1 : at + 3]
    return len(digits) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in digits)
