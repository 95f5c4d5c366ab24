"""Errors on the wire: application/problem+json (RFC 9457), made from the one base of errors, without our inner texts."""

from typing import Any

import orjson

from app.api.answer import Answer
from app.errors import SluiceError

PROBLEM = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict",
    412: "Precondition failed",
    413: "Content too large",
    414: "URI too long",
    415: "Unsupported media type",
    422: "Unprocessable content",
    428: "Precondition required",
    431: "Request header fields too large",
    503: "Service unavailable",
}


class MethodNotAllowed(SluiceError):
    """The route exists, but not for this method."""

    code = "method_not_allowed"
    status = 405
    exit_code = 2
    hint = "Use a method that the Allow header names; /openapi.json has all routes."

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(f"{method} is not possible here; {allow} is")
        self.allow = allow


class InternalError(SluiceError):
    """A fault of ours; nothing of it is shown, the log has it under the request id."""

    code = "internal"
    status = 503
    hint = "Try again; if it stays, look up the X-Request-Id that you sent in the log."


def problem(error: SluiceError) -> Answer:
    """The answer for an error: type, title, status, detail, code, hint, and the field where one is to blame."""
    document: dict[str, Any] = {
        "type": f"urn:sluice:error:{error.code}",
        "title": TITLES.get(error.status, "Error"),
        "status": error.status,
        "detail": error.message,
        "code": error.code,
        "hint": error.advice,
    }
    if error.field:
        document["field"] = error.field
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if error.status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    elif isinstance(error, MethodNotAllowed):
        headers = ((b"allow", error.allow.encode("ascii")),)
    elif error.status == 503:
        headers = ((b"retry-after", b"3"),)
    return Answer(error.status, orjson.dumps(document), PROBLEM, headers)
