"""Errors on the wire: one form for all of them, and nothing of ours in it."""

import importlib
import pkgutil
from collections.abc import Iterator

import orjson

import app
from app.api.problems import TITLES, MethodNotAllowed, problem
from app.errors import BadRequest, NotFound, SluiceError, Unauthorized


def errors(base: type[SluiceError] = SluiceError) -> Iterator[type[SluiceError]]:
    """All error classes of the product."""
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = [base]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def test_a_problem_says_what_and_what_to_do():
    """Type, title, status, detail, code and hint, and the field where one is to blame."""
    answer = problem(NotFound("no tenant 'a'", field="tenant"))

    assert (answer.status, answer.content_type) == (404, "application/problem+json")
    assert orjson.loads(answer.body) == {
        "type": "urn:sluice:error:not_found",
        "title": "Not found",
        "status": 404,
        "detail": "no tenant 'a'",
        "code": "not_found",
        "hint": "Check the spelling; ids in paths are percent-encoded.",
        "field": "tenant",
    }
    assert "field" not in orjson.loads(problem(NotFound("no such route")).body)


def test_headers_tell_clients_what_the_status_asks_for():
    """A 401 challenges, a 405 names the methods, a 503 says when to come back, others add nothing."""
    assert problem(Unauthorized("no key")).headers == ((b"www-authenticate", b"Bearer"),)
    assert problem(MethodNotAllowed("PUT", "GET, POST")).headers == ((b"allow", b"GET, POST"),)
    assert problem(SluiceError("down")).headers == ((b"retry-after", b"3"),)
    assert problem(BadRequest("no")).headers == ()


def test_every_error_has_a_code_a_title_and_a_remedy():
    """No error of ours is a 500, and none lacks a title, a meaning or a remedy."""
    found = list(errors())

    assert len(found) > 10
    assert {kind.status for kind in found if kind.status not in TITLES} == set()
    assert all(kind.hint and kind.__doc__ for kind in found)
