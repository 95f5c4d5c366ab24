"""docs/reference/http.md, from the OpenAPI document that a built service answers."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from starlette.types import ASGIApp, Message

from app.clock import SystemClock
from app.database import DatabaseUrls
from app.examples import EXAMPLES
from app.main import build
from app.observability.metrics import Metrics
from app.policy.program import find_opa
from app.settings import load_settings
from app.wiring import Surroundings
from docs.generate.markdown import code, page, table
from docs.generate.schema import Schema, default_of, resolve, type_of

INTRO = """
The running service answers this as OpenAPI 3.1 at `GET /openapi.json`.

Every call needs `Authorization: Bearer KEY`, except `/healthz`, `/readyz`, `/metrics`, `/version` and `/openapi.json`.
Bodies are JSON of at most 64 KiB, `/decide/batch` of 256 KiB.
A body is refused when it names a key twice, holds NaN, Infinity, a number that a double cannot hold exactly, U+0000 or half of a
surrogate pair, or nests deeper than 64 levels; when it is compressed; or when it takes longer than 10 s to arrive.
Ids in paths are percent-encoded, slashes included. What can go wrong stands with the [errors](errors.md).
`x-request-id`, where the call has one, comes back with the answer.
"""

_UNREACHED = "postgresql+psycopg://nobody@localhost/nowhere"
"""Building connects to nothing; only a running service needs these."""


def http_page() -> str:
    """Every route, then every shape that a body or an answer has."""
    document = openapi()
    operations = [_operation(method, path, each, document) for method, path, each in routes(document)]
    shapes = [_shape(name, shape, document) for name, shape in sorted(document["components"]["schemas"].items()) if "properties" in shape]
    return page("HTTP routes", INTRO.strip(), *operations, "## Shapes", *shapes)


def openapi() -> dict[str, Any]:
    """The document as a client gets it."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_answer(Path(folder)))


def routes(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Method, path and description of every route."""
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            yield method.upper(), path, operation


async def _answer(folder: Path) -> dict[str, Any]:
    around = Surroundings(
        urls=DatabaseUrls(_UNREACHED, _UNREACHED, _UNREACHED, _UNREACHED),
        opa_url="http://localhost:1",
        opa_binary=find_opa(),
        opa_token="",
        opa_cores=1,
        telemetry="http://localhost:1",
        telemetry_token=None,
        last_good=folder / "last-good",
        waiting=folder / "waiting.json",
        secrets=folder,
        reports=folder / "reports",
        report_root=folder / "root.pem",
    )
    service = build(load_settings(EXAMPLES / "sluice.yaml"), around, SystemClock(), Metrics())
    document: dict[str, Any] = orjson.loads(await _get(service.app, "/openapi.json"))
    return document


async def _get(app: ASGIApp, path: str) -> bytes:
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [], "root_path": ""}
    body: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        body.append(message.get("body", b""))

    await app(scope, receive, send)
    return b"".join(body)


def _operation(method: str, path: str, operation: Schema, document: Schema) -> str:
    parts = [f"## {method} {path}", operation.get("description") or operation.get("summary", "")]
    if parameters := operation.get("parameters"):
        rows = [_parameter(each, document) for each in parameters]
        parts.append(table(("parameter", "in", "type", "default", "meaning"), rows))
    if body := _json(operation.get("requestBody", {})):
        parts.append(_body(body, document))
    parts.append(_answers(operation["responses"]))
    return "\n\n".join(part for part in parts if part)


def _parameter(parameter: Schema, document: Schema) -> tuple[str, ...]:
    schema = parameter.get("schema", {})
    default = default_of(schema, required=parameter.get("required", False))
    return code(parameter["name"]), parameter["in"], type_of(schema, document), default, parameter.get("description", "")


def _body(body: Schema, document: Schema) -> str:
    return f"Body: {_name(body)}." if _name(body) else f"Body:\n\n{_fields(body, document)}"


def _answers(responses: Mapping[str, Schema]) -> str:
    """What comes back when all is well, and which statuses mean a problem."""
    well = [f"{status} {_name(_json(answer))}".strip() for status, answer in sorted(responses.items()) if status < "400"]
    problems = [status for status in sorted(responses) if status >= "400"]
    return f"Answers {', '.join(well)}." + (f" Problems: {', '.join(problems)}." if problems else "")


def _json(message: Schema) -> Mapping[str, Any]:
    content = message.get("content", {})
    found: Mapping[str, Any] = next((each["schema"] for kind, each in content.items() if kind.endswith("json")), {})
    return found


def _name(shape: Schema) -> str:
    """A link to the shape, where it has a name."""
    name = str(shape.get("$ref", "")).rpartition("/")[2]
    return f"[{name}](#{name.lower()})" if name else ""


def _shape(name: str, shape: Schema, document: Schema) -> str:
    return "\n\n".join(filter(None, (f"### {name}", shape.get("description"), _fields(shape, document))))


def _fields(shape: Schema, document: Schema) -> str:
    needed = shape.get("required", ())
    rows = [
        (code(name), type_of(field, document), default_of(field, required=name in needed), _meaning(field, document))
        for name, field in shape["properties"].items()
    ]
    return table(("field", "type", "default", "meaning"), rows)


def _meaning(field: Schema, document: Schema) -> str:
    return str(field.get("description") or resolve(field, document).get("description", ""))
