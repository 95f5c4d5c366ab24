"""/quotas: who may have how much. The version of a quota is its ETag; `reason` beside the fields says why it changes."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, Field

from app.api import strict_json
from app.api.paths import EncodedPathRoute
from app.api.query import known_query
from app.auth.keys import Principal
from app.errors import BadRequest, NotFound
from app.ids import tenant_id
from app.instants import rfc3339
from app.quota.quota import QuotaBody
from app.quota.registry import HISTORY_PAGE, MAX_REASON_CHARS, Registry, Tenant
from app.quota.store import Version

TENANTS_PAGE = 100
MAX_TENANTS_PAGE = 1000  # some 200 KB of answer

_ETAG = re.compile(r'"([1-9][0-9]{0,17})"')


class TenantAnswer(BaseModel):
    """A tenant's quota in force. A dimension that is absent is not limited."""

    tenant: str
    version: int
    qps: int | float | None = None
    tpm: int | None = None
    concurrency: int | None = None
    rate_factors: dict[str, int | float] | None = None
    costs: dict[str, int | float] | None = None
    sla_class: str
    region: str | None = None
    zone: str


class TenantsAnswer(BaseModel):
    """One page of tenants by id."""

    tenants: list[TenantAnswer]
    next: str | None = Field(description="the `after` of the next page; null where nothing follows")


class VersionAnswer(BaseModel):
    """One version: before and after as snapshots (decimals as text), and their differences by JSON pointer."""

    version: int
    operation: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    diff: list[dict[str, Any]]
    operator: str
    reason: str
    at: str


class HistoryAnswer(BaseModel):
    """One page of a tenant's versions, newest first."""

    tenant: str
    versions: list[VersionAnswer]
    next: int | None = Field(description="the `below` of the next page; null where nothing follows")


def _body_schema(properties: dict[str, Any], *, required: bool) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


_REASON = {"reason": {"type": "string", "maxLength": MAX_REASON_CHARS, "description": "kept in history and log"}}
_QUOTA_SCHEMA = QuotaBody.model_json_schema(mode="validation")["properties"] | _REASON

IfMatch = Annotated[str | None, Header(description='version to change, as ETag: "3"')]


def quota_router(registry: Registry, principal: Callable[..., Any]) -> APIRouter:
    """The routes under /quotas. `principal` is a dependency that gives the calling Principal.

    Operators and admins read and write, auditors read. Ids are percent-encoded in paths, slashes included.
    """
    router = APIRouter(prefix="/quotas", tags=["quotas"], route_class=EncodedPathRoute, dependencies=[Depends(known_query)])

    def reader(caller: Annotated[Principal, Depends(principal)]) -> None:
        caller.require("operator", "auditor", "admin")

    def writer(caller: Annotated[Principal, Depends(principal)]) -> str:
        caller.require("operator", "admin")
        return caller.name

    _add_reads(router, registry, reader)
    _add_writes(router, registry, writer)
    return router


def _add_reads(router: APIRouter, registry: Registry, reader: Callable[..., None]) -> None:
    only_readers = [Depends(reader)]

    @router.get("", dependencies=only_readers, response_model_exclude_unset=True)
    async def list_quotas(after: str = "", limit: Annotated[int, Query(ge=1, le=MAX_TENANTS_PAGE)] = TENANTS_PAGE) -> TenantsAnswer:
        """Tenants by id, a page at a time."""
        rest = [tenant for tenant in registry.tenants() if tenant.id > after]
        page = [_answer(tenant) for tenant in rest[:limit]]
        return TenantsAnswer(tenants=page, next=page[-1].tenant if len(rest) > limit else None)

    @router.get("/{tenant}", dependencies=only_readers, response_model_exclude_none=True)
    async def get_quota(tenant: str, response: Response) -> TenantAnswer:
        """The quota in force, with its version as ETag."""
        name = tenant_id(tenant)
        known = registry.tenant(name)
        if known is None:
            raise NotFound(f"no tenant {name!r}", field="tenant")
        return _tagged(known, response)

    @router.get("/{tenant}/history", dependencies=only_readers, response_model_exclude_unset=True)
    async def get_history(
        tenant: str,
        below: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        limit: Annotated[int, Query(ge=1, le=HISTORY_PAGE)] = HISTORY_PAGE,
    ) -> HistoryAnswer:
        """Versions newest first, deleted tenants included."""
        versions = await registry.history(tenant, below=below, most=limit)
        more = len(versions) == limit and versions[-1].version > 1
        return HistoryAnswer(tenant=tenant_id(tenant), versions=[_line(v) for v in versions], next=versions[-1].version if more else None)


def _add_writes(router: APIRouter, registry: Registry, writer: Callable[..., str]) -> None:
    Operator = Annotated[str, Depends(writer)]  # noqa: N806 - a type

    @router.put(
        "/{tenant}",
        response_model_exclude_none=True,
        openapi_extra=_body_schema(_QUOTA_SCHEMA, required=True),
    )
    async def put_quota(
        *,
        tenant: str,
        request: Request,
        response: Response,
        operator: Operator,
        if_match: IfMatch = None,
        if_none_match: Annotated[str | None, Header(description="* creates only")] = None,
    ) -> TenantAnswer:
        """Create a quota, or replace the version that If-Match names. Fields that are left out go back to their defaults."""
        document, reason = _split(await request.body())
        must_be_new = _must_be_new(if_none_match)
        changed = await registry.put(
            tenant, document, if_match=_version(if_match), operator=operator, reason=reason, must_be_new=must_be_new
        )
        return _tagged(changed, response)

    @router.patch(
        "/{tenant}",
        response_model_exclude_none=True,
        openapi_extra=_body_schema(_QUOTA_SCHEMA, required=True),
    )
    async def patch_quota(tenant: str, request: Request, response: Response, operator: Operator, if_match: IfMatch = None) -> TenantAnswer:
        """Change the version that If-Match names by a JSON merge patch: null removes a field."""
        document, reason = _split(await request.body())
        changed = await registry.patch(tenant, document, if_match=_version(if_match), operator=operator, reason=reason)
        return _tagged(changed, response)

    @router.delete("/{tenant}", status_code=204, openapi_extra=_body_schema(_REASON, required=False))
    async def delete_quota(tenant: str, request: Request, operator: Operator, if_match: IfMatch = None) -> None:
        """Delete the version that If-Match names; history stays. The body may hold a `reason`."""
        document, reason = _split(await request.body() or b"{}")
        if document:
            raise BadRequest(f"{next(iter(document))}: a deletion takes a `reason` and nothing else")
        await registry.delete(tenant, if_match=_version(if_match), operator=operator, reason=reason)


def _split(body: bytes) -> tuple[dict[str, Any], str]:
    """The document without its `reason`, and the reason."""
    document = strict_json.loads(body)
    if not isinstance(document, dict):
        raise BadRequest("the body must be a JSON object")
    reason = document.pop("reason", None)
    return document, "" if reason is None else reason


def _version(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    tag = _ETAG.fullmatch(if_match.strip())
    if tag is None:
        raise BadRequest('If-Match: must name one version as GET answers it in ETag, for example "3"', field="if-match")
    return int(tag[1])


def _must_be_new(if_none_match: str | None) -> bool:
    if if_none_match not in (None, "*"):
        raise BadRequest("If-None-Match: only * is supported, to create and never replace", field="if-none-match")
    return if_none_match == "*"


def _tagged(tenant: Tenant, response: Response) -> TenantAnswer:
    response.headers["etag"] = f'"{tenant.version}"'
    return _answer(tenant)


def _answer(tenant: Tenant) -> TenantAnswer:
    return TenantAnswer(tenant=tenant.id, version=tenant.version, **tenant.quota.facts())


def _line(version: Version) -> VersionAnswer:
    snapshots = {"before": version.before, "after": version.after}
    return VersionAnswer(
        version=version.version,
        operation=version.operation,
        **{name: snapshot for name, snapshot in snapshots.items() if snapshot is not None},
        diff=version.diff,
        operator=version.operator,
        reason=version.reason,
        at=rfc3339(version.at),
    )
