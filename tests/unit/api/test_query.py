"""Parameters of a query."""

from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, FastAPI, Query

from app.api.failures import install_failures
from app.api.query import known_query
from tests.fixtures.asgi import call


def period(begin: Annotated[str | None, Query(alias="from")] = None) -> str | None:
    return begin


def build() -> FastAPI:
    built = FastAPI()
    router = APIRouter(prefix="/things", dependencies=[Depends(known_query)])

    @router.get("")
    async def things(
        since: Annotated[str | None, Depends(period)], limit: int = 1, size: Annotated[list[int] | None, Query()] = None
    ) -> list[str | int | None]:
        return [since, limit, *(size or [])]

    @router.get("/{thing}")
    async def get(thing: str) -> list[str]:
        return [thing]

    install_failures(built)
    built.include_router(router)
    return built


APP = build()


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("/things", [None, 1]),
        ("/things?from=a&limit=2&size=3&size=4", ["a", 2, 3, 4]),
        ("/things?&", [None, 1]),
        ("/things/x?", ["x"]),
    ],
)
async def test_what_a_route_has_is_taken(target: str, answer: list[str | int | None]):
    """Parameters of the route and of what it depends on are taken, lists as often as they are given."""
    reply = await call(APP, "GET", target)

    assert (reply.status, reply.json) == (200, answer)


@pytest.mark.parametrize(
    ("target", "field", "hint"),
    [
        ("/things?form=a", "form", "Parameters here: from, limit, size."),
        ("/things?begin=a", "begin", "Parameters here: from, limit, size."),
        ("/things?Limit=2", "Limit", "Parameters here: from, limit, size."),
        ("/things?limit", "limit", ""),
        ("/things?x", "x", "Parameters here: from, limit, size."),
        ("/things/x?limit=2", "limit", "Parameters here: none."),
        ("/things?limit=1&limit=1", "limit", "Give it once; each of several values is a call of its own."),
        ("/things?from=&from=a", "from", "Give it once; each of several values is a call of its own."),
        ("/things?" + "x" * 5000, "x" * 40, "Parameters here: from, limit, size."),
    ],
)
async def test_what_it_has_not_is_refused_by_name(target: str, field: str, hint: str):
    """A name with a typo, in another case or of another route, and a second value where one counts, are a 400 with the known names."""
    reply = await call(APP, "GET", target)

    assert (reply.status, reply.json["code"], reply.json["field"]) == (400, "bad_request", field)
    assert hint in reply.json["hint"]
