"""The framework's own errors in our one form: what FastAPI refuses is a problem+json too."""

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.api.answer import Answer
from app.api.problems import InternalError, MethodNotAllowed, problem
from app.errors import NotFound, SluiceError
from app.fields import bad_field

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
"""All that any route of ours has."""


def install_failures(app: FastAPI) -> None:
    """Turn SluiceError, validation errors, 404 and 405 into problem+json."""

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, SluiceError)  # noqa: S101 - registered for this class alone
        return _response(problem(error))

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class alone
        first = error.errors()[0]
        return _response(problem(bad_field(first | {"loc": first["loc"][1:]})))  # the first part says body, path or query

    async def unexpected(_: Request, __: Exception) -> Response:
        return _response(problem(InternalError("an unexpected error; nothing of the request was kept")))

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class alone
        if error.status_code == 405:
            return _response(problem(MethodNotAllowed(request.method, allow=_methods_of(request))))
        return _response(problem(NotFound("no such route", hint="See /openapi.json for the routes.")))

    app.add_exception_handler(SluiceError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, unrouted)
    app.add_exception_handler(Exception, unexpected)  # the edge logs it: the framework raises it on after this answer


def _methods_of(request: Request) -> str:
    """All methods that the path has: there is a route for each, and the framework names that of the first alone."""

    def routed(method: str) -> bool:
        return any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)

    return ", ".join(filter(routed, METHODS))


def _response(answer: Answer) -> Response:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, headers, answer.content_type)
