"""Ids in paths."""

from urllib.parse import quote

import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse
from hypothesis import given
from hypothesis import strategies as st

from app.api.paths import EncodedPathRoute
from app.errors import BadRequest
from tests.fixtures.asgi import call


def build() -> FastAPI:
    built = FastAPI()
    router = APIRouter(prefix="/things", route_class=EncodedPathRoute)

    @router.get("/{thing}")
    async def get(thing: str) -> dict[str, str]:
        return {"thing": thing}

    @router.get("/{thing}/history")
    async def history(thing: str) -> dict[str, str]:
        return {"history": thing}

    @built.exception_handler(BadRequest)
    async def bad(_: Request, error: BadRequest) -> JSONResponse:
        return JSONResponse({"field": error.field}, error.status)

    built.include_router(router)
    return built


APP = build()


@pytest.mark.parametrize("thing", ["a", "a/b", "a/history", "../x", "a?b#c", "a%2Fb", "租户", " ", "a+b", "100%", "a/history/history"])
async def test_an_id_comes_back_whole(thing: str):
    """An encoded id, slashes and all, is one id and reaches its own resource."""
    encoded = quote(thing, safe="")

    assert (await call(APP, "GET", f"/things/{encoded}")).json == {"thing": thing}
    assert (await call(APP, "GET", f"/things/{encoded}/history")).json == {"history": thing}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda text: text not in (".", "..")))
async def test_any_text_comes_back_whole(thing: str):
    """Any text survives the path."""
    assert (await call(APP, "GET", f"/things/{quote(thing, safe='')}")).json == {"thing": thing}


async def test_a_plain_slash_is_a_step():
    """A slash that is not encoded separates, so another path is no such route."""
    assert (await call(APP, "GET", "/things/a/b")).status == 404
    assert (await call(APP, "GET", "/things/a/history")).json == {"history": "a"}


@pytest.mark.parametrize("raw", ["%ff", "%C3%28", "%ED%A0%80"])
async def test_what_is_no_text_is_refused(raw: str):
    """Bytes that are not UTF-8 are a 400 naming the parameter."""
    answer = await call(APP, "GET", f"/things/{raw}")

    assert (answer.status, answer.json) == (400, {"field": "thing"})


@pytest.mark.parametrize("raw", ["%", "%2", "%zz", "a%2"])
async def test_a_broken_escape_is_refused(raw: str):
    """A percent sign without two hexadecimal digits is a 400, not a guess."""
    scope = {"type": "http", "method": "GET", "path": "/things/x", "raw_path": f"/things/{raw}".encode(), "root_path": ""}
    route = APIRouter(route_class=EncodedPathRoute)

    @route.get("/things/{thing}")
    async def get(thing: str) -> None: ...

    with pytest.raises(BadRequest, match="hexadecimal"):
        route.routes[0].matches(scope)


async def test_other_methods_are_not_allowed():
    """A known path with another method is 405."""
    assert (await call(APP, "POST", "/things/a%2Fb")).status == 405
