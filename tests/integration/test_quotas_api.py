"""/quotas over HTTP, down to PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import pytest
from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse

from app.api.quotas import quota_router
from app.auth.keys import Principal
from app.database import DatabaseUrls, create_engine
from app.errors import SluiceError
from app.setting_sections import DatabaseSettings
from tests.fixtures.asgi import Reply, call
from tests.fixtures.registry import registry_of


@pytest.fixture
async def api(database_urls: DatabaseUrls, tmp_path: Path) -> AsyncIterator[FastAPI]:
    engine = create_engine(database_urls.registry, DatabaseSettings())
    built = FastAPI()

    async def principal(x_role: Annotated[str, Header()] = "operator") -> Principal:
        return Principal("id", f"{x_role}1", frozenset({x_role}), frozenset())

    @built.exception_handler(SluiceError)
    async def problem(_: Request, error: SluiceError) -> JSONResponse:
        return JSONResponse({"code": error.code, "field": error.field, "detail": error.message}, error.status)

    built.include_router(quota_router(registry_of(engine, tmp_path), principal))
    yield built
    await engine.dispose()


async def send(api: FastAPI, method: str, tenant: str, document: Any = None, **headers: str) -> Reply:
    body = b"" if document is None else document if isinstance(document, bytes) else orjson.dumps(document)
    return await call(api, method, f"/quotas/{quote(tenant, safe='')}", body, **headers)


async def test_create_read_change_delete(api: FastAPI):
    """A quota is created, read with its version as ETag, patched against it, and deleted."""
    created = await send(api, "PUT", "a", {"qps": 50, "tpm": 30000, "costs": {"m": 5}, "reason": "first"})
    read = await send(api, "GET", "a")
    patched = await send(api, "PATCH", "a", {"tpm": None, "qps": 0.5}, if_match='"1"')
    deleted = await send(api, "DELETE", "a", {"reason": "gone"}, if_match='"2"')

    assert (created.status, created.headers["etag"]) == (200, '"1"')
    assert read.body == b'{"tenant":"a","version":1,"qps":50,"tpm":30000,"costs":{"m":5},"sla_class":"standard","zone":"UTC"}'
    assert (patched.headers["etag"], patched.json["qps"], "tpm" in patched.json) == ('"2"', 0.5, False)
    assert (deleted.status, deleted.body) == (204, b"")
    assert (await send(api, "GET", "a")).status == 404


async def test_history_tells_who_what_and_why(api: FastAPI):
    """History names operator, reason, operation and difference of each version, deleted tenants included."""
    await send(api, "PUT", "a", {"qps": 5, "reason": "first"})
    await send(api, "DELETE", "a", {"reason": "gone"}, if_match='"1"')
    told = (await call(api, "GET", "/quotas/a/history?limit=1")).json
    rest = (await call(api, "GET", f"/quotas/a/history?below={told['next']}")).json

    assert (told["tenant"], told["next"]) == ("a", 2)
    assert [(line["version"], line["operation"], line["operator"], line["reason"]) for line in told["versions"] + rest["versions"]] == [
        (2, "delete", "operator1", "gone"),
        (1, "create", "operator1", "first"),
    ]
    assert rest["next"] is None
    assert [("before" in line, "after" in line) for line in told["versions"] + rest["versions"]] == [(True, False), (False, True)]
    assert rest["versions"][0]["after"] == {"qps": "5", "sla_class": "standard", "zone": "UTC"}


@pytest.mark.parametrize("tenant", ["a/b", "a/history", "../x", "a?b#c", "租户", "a%2Fb", "100%"])
async def test_an_id_with_any_characters_is_that_tenant(api: FastAPI, tenant: str):
    """Ids with slashes, dots, percent signs and CJK come back whole and never touch another tenant."""
    await send(api, "PUT", "a", {"qps": 1})
    created = await send(api, "PUT", tenant, {"qps": 2})

    assert (created.status, created.json["tenant"]) == (200, tenant)
    assert (await send(api, "GET", tenant)).json["qps"] == 2
    assert (await call(api, "GET", f"/quotas/{quote(tenant, safe='')}/history")).json["tenant"] == tenant
    assert (await send(api, "GET", "a")).json["qps"] == 1


@pytest.mark.parametrize("tenant", [".", "..", "*", " a", "a\u200b", "a" * 300, "a\x00"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_what_is_no_id_is_refused_everywhere(api: FastAPI, tenant: str, method: str):
    """Each method answers 400 on `tenant` for what is no id."""
    answer = await call(api, method, f"/quotas/{quote(tenant, safe='').replace('.', '%2E')}", b'{"qps": 1}' if method[0] == "P" else b"")

    assert (answer.status, answer.json["field"]) == (400, "tenant")


async def test_versions_guard_changes(api: FastAPI):
    """Without a version 428, with a stale one 412, with something else 400, and creating over something 412."""
    await send(api, "PUT", "a", {"qps": 1})

    assert (await send(api, "PATCH", "a", {"qps": 2})).status == 428
    assert (await send(api, "PUT", "a", {"qps": 2})).status == 428
    assert (await send(api, "DELETE", "a")).status == 428
    assert (await send(api, "PATCH", "a", {"qps": 2}, if_match='"7"')).status == 412
    assert (await send(api, "PUT", "a", {"qps": 2}, if_none_match="*")).status == 412
    for tag in ("*", 'W/"1"', "1", '"one"', '"1", "2"', '"0"'):
        assert (await send(api, "PATCH", "a", {"qps": 2}, if_match=tag)).json["field"] == "if-match"
    assert (await send(api, "PUT", "a", {"qps": 2}, if_none_match='"1"')).status == 400
    assert (await send(api, "GET", "a")).json["version"] == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"qps":1,"qps":2}', "duplicate_key"),
        (b'{"costs":{"m":1,"m":2}}', "duplicate_key"),
        (b'{"qps":NaN}', "bad_request"),
        (b'{"qps":1e999}', "bad_request"),
        (b'{"tpm":18446744073709551617}', "bad_request"),
        (b'{"tpm":"30000"}', "bad_request"),
        (b'{"tpm":true}', "bad_request"),
        (b'{"qps":1,"reason":"a\\u0000b"}', "bad_request"),
        (b'{"qps":1,"reason":"\\ud800"}', "bad_request"),
        (b'{"qps":1,"reason":7}', "bad_request"),
        (b'{"qps":1,"version":3}', "bad_request"),
        (b"[]", "bad_request"),
        (b"", "bad_request"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_bad_bodies_change_nothing(api: FastAPI, method: str, body: bytes, code: str):
    """Doubled keys, impossible numbers, text for numbers and text that no log can hold are a 400, and the version stays."""
    await send(api, "PUT", "a", {"qps": 1})
    answer = await send(api, method, "a", body, if_match='"1"')

    assert (answer.status, answer.json["code"]) == (400, code)
    assert (await send(api, "GET", "a")).json["version"] == 1


async def test_a_written_out_escape_is_kept(api: FastAPI):
    """The six characters backslash-u-0000 in a reason are stored as they are."""
    await send(api, "PUT", "a", b'{"qps":1,"reason":"a\\\\u0000b"}')

    assert (await call(api, "GET", "/quotas/a/history")).json["versions"][0]["reason"] == "a\\u0000b"


@pytest.mark.parametrize(
    ("role", "reads", "writes"),
    [("operator", 200, 200), ("admin", 200, 200), ("auditor", 200, 403), ("gateway", 403, 403), ("approver", 403, 403)],
)
async def test_roles_bound_what_a_caller_may_do(api: FastAPI, role: str, reads: int, writes: int):
    """Operators and admins read and write, auditors read, others do neither."""
    await send(api, "PUT", "a", {"qps": 1})

    assert (await send(api, "GET", "a", x_role=role)).status == reads
    assert (await call(api, "GET", "/quotas", x_role=role)).status == reads
    assert (await call(api, "GET", "/quotas/a/history", x_role=role)).status == reads
    assert (await send(api, "PUT", "b", {"qps": 1}, x_role=role)).status == writes
    assert (await send(api, "PATCH", "a", {"qps": 2}, x_role=role, if_match='"1"')).status == writes
    assert (await send(api, "DELETE", "a", x_role=role, if_match='"2"')).status == (204 if writes == 200 else writes)


async def test_tenants_are_listed_in_pages(api: FastAPI):
    """The list is by id, a page at a time."""
    for tenant in ("c", "a", "b"):
        await send(api, "PUT", tenant, {"qps": 1})
    first = (await call(api, "GET", "/quotas?limit=2")).json
    rest = (await call(api, "GET", f"/quotas?limit=2&after={first['next']}")).json

    assert ([tenant["tenant"] for tenant in first["tenants"]], first["next"]) == (["a", "b"], "b")
    assert ([tenant["tenant"] for tenant in rest["tenants"]], rest["next"]) == (["c"], None)


@pytest.mark.parametrize(
    ("method", "target", "field"),
    [
        ("GET", "/quotas?limits=2", "limits"),
        ("GET", "/quotas?limit=2&limit=3", "limit"),
        ("GET", "/quotas/a?version=1", "version"),
        ("GET", "/quotas/a/history?before=3", "before"),
        ("PUT", "/quotas/a?dry_run=true", "dry_run"),
        ("DELETE", "/quotas/a?reason=test", "reason"),
    ],
)
async def test_a_parameter_that_nobody_reads_is_refused(api: FastAPI, method: str, target: str, field: str):
    """What a route would pass over is a 400 with its name, and nothing was changed."""
    await send(api, "PUT", "a", {"qps": 5})
    reply = await call(api, method, target, b'{"qps": 6}', if_match='"1"')

    assert (reply.status, reply.json["field"]) == (400, field)
    assert (await send(api, "GET", "a")).json["qps"] == 5


async def test_deleting_takes_a_reason_and_nothing_else(api: FastAPI):
    """A deletion with other fields is refused: whoever sent them meant something else."""
    await send(api, "PUT", "a", {"qps": 1})

    assert (await send(api, "DELETE", "a", {"qps": 2}, if_match='"1"')).status == 400
    assert (await send(api, "DELETE", "a", if_match='"1"')).status == 204


def test_the_contract_is_described(api: FastAPI):
    """OpenAPI has all six routes with the fields of a quota."""
    document = api.openapi()

    assert {("/quotas", "get"), ("/quotas/{tenant}/history", "get")} | {
        ("/quotas/{tenant}", method) for method in ("get", "put", "patch", "delete")
    } == {(path, method) for path, methods in document["paths"].items() for method in methods}
    body = document["paths"]["/quotas/{tenant}"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {
        *("qps", "tpm", "concurrency", "rate_factors", "costs", "sla_class", "region", "zone", "reason"),
    }
