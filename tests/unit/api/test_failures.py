"""What the framework refuses or stumbles over, in our one form."""

import contextlib
from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.api.failures import install_failures
from app.errors import Conflict


def app() -> FastAPI:
    built = FastAPI()
    install_failures(built)

    @built.get("/bug")
    async def bug() -> None:
        raise RuntimeError("secret detail")

    @built.get("/ours")
    async def ours() -> None:
        raise Conflict("no")

    return built


async def get(path: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [], "root_path": ""}
    with contextlib.suppress(RuntimeError):  # raised on after the answer, for the edge to log
        await app()(scope, receive, send)
    return sent[0]["status"], orjson.loads(sent[1]["body"])


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [
        ("/bug", "GET", 503, "internal"),
        ("/ours", "GET", 409, "conflict"),
        ("/absent", "GET", 404, "not_found"),
        ("/ours", "PUT", 405, "method_not_allowed"),
    ],
)
async def test_every_failure_is_a_problem_and_none_is_a_500(path: str, method: str, status: int, code: str) -> None:
    """A fault of ours is a 503 that shows nothing of it; all others name what is wrong."""
    answered, document = await get(path, method)

    assert (answered, document["code"]) == (status, code)
    assert "secret detail" not in str(document)
