"""/approvals: who may use a sensitive model, for what and until when; asked for by one key and answered by another.

Subjects are shown as pseudonyms. Reasons are shown in clear to whoever may read approvals, since who answers has to weigh them.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field, ValidationError

from app.api import strict_json
from app.api.query import known_query
from app.approvals.approval import STANDINGS, Approval, Standing, Step
from app.approvals.approvals import Approvals
from app.approvals.store import Filters
from app.approvals.wish import Answer, Wish
from app.audit.people.subject_keys import Keyring
from app.auth.keys import Principal, Role
from app.clock import Clock
from app.errors import BadRequest, NotFound
from app.fields import bad_field
from app.ids import model_id, tenant_id
from app.instants import rfc3339
from app.quota.registry import Registry

Shape = TypeVar("Shape", bound=BaseModel)
PAGE = 100
MAX_PAGE = 1000
READERS: tuple[Role, ...] = ("operator", "approver", "auditor", "admin")
ASKERS: tuple[Role, ...] = ("operator", "admin")
"""For any tenant; a gateway may ask for the tenants it speaks for."""
REVOKERS: tuple[Role, ...] = ("approver", "operator", "admin")


class StepAnswer(BaseModel):
    """One step: by which key's name, when and why."""

    by: str
    at: str
    reason: str | None = Field(None, description="absent once the key of the person concerned is destroyed")
    unreadable: bool | None = Field(None, description="true where the reason, or that key, is damaged")


class ApprovalAnswer(BaseModel):
    """An approval. Without `subject` it is for everyone of the tenant."""

    id: str = Field(description="what requests name as approval_id; also the id of the log entry that it was asked by")
    tenant: str
    model: str
    action: str
    purpose: str | None = None
    subject: str | None = Field(None, description="a pseudonym of the tenant")
    expires: str
    state: str = Field(description=", ".join(STANDINGS))
    asked: StepAnswer
    answered: StepAnswer | None = Field(None, description="by whom it was approved or refused")
    revoked: StepAnswer | None = None


class ApprovalsAnswer(BaseModel):
    """One page of approvals, newest first."""

    approvals: list[ApprovalAnswer]
    next: str | None = Field(description="the `cursor` of the next page; null where nothing follows")


class _Callers:
    """The dependencies that give a caller who may take a step, and raise Forbidden for all others."""

    def __init__(self, principal: Callable[..., Any]) -> None:
        self._principal = principal

    def with_role(self, *roles: Role) -> Callable[..., Principal]:
        """A caller with one of `roles`."""

        def caller(who: Annotated[Principal, Depends(self._principal)]) -> Principal:
            who.require(*roles)
            return who

        return caller


def approval_router(approvals: Approvals, registry: Registry, clock: Clock, principal: Callable[..., Any]) -> APIRouter:
    """The routes under /approvals. `principal` is a dependency that gives the calling Principal."""
    router = APIRouter(prefix="/approvals", tags=["approvals"], dependencies=[Depends(known_query)])
    callers, shown = _Callers(principal), _Shown(approvals, clock)
    _add_reads(router, approvals, callers, shown)
    _add_ask(router, approvals, registry, callers, shown)
    _add_steps(router, approvals, callers, shown)
    return router


class _Shown:
    """Approvals as they are answered, with their reasons in clear."""

    def __init__(self, approvals: Approvals, clock: Clock) -> None:
        self._approvals = approvals
        self._clock = clock

    async def one(self, approval: Approval) -> ApprovalAnswer:
        """One approval."""
        return (await self.all([approval]))[0]

    async def all(self, approvals: list[Approval]) -> list[ApprovalAnswer]:
        """Several, by one question for their keys."""
        keys, now = await self._approvals.keyring(approvals), self._clock.utcnow()
        return [
            ApprovalAnswer(
                id=str(one.id),
                tenant=one.tenant,
                model=one.model,
                action=one.action,
                purpose=one.purpose,
                subject=one.subject,
                expires=rfc3339(one.expires),
                state=one.standing(now),
                asked=_step(one.id, one.asked, keys),
                answered=_step(one.id, one.answered, keys) if one.answered else None,
                revoked=_step(one.id, one.revoked, keys) if one.revoked else None,
            )
            for one in approvals
        ]


def _add_reads(router: APIRouter, approvals: Approvals, callers: _Callers, shown: _Shown) -> None:
    only_readers = [Depends(callers.with_role(*READERS))]

    @router.get("", dependencies=only_readers, response_model_exclude_unset=True)
    async def list_approvals(
        *,
        tenant: str | None = None,
        model: str | None = None,
        state: Annotated[Standing | None, Query(description="as it counts now")] = None,
        cursor: Annotated[UUID | None, Query(description="`next` of the page before")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = PAGE,
    ) -> ApprovalsAnswer:
        """Approvals, newest first, a page at a time; those that ended too."""
        filters = Filters(None if tenant is None else tenant_id(tenant), None if model is None else model_id(model), state, cursor)
        found = await approvals.list(filters, most=limit + 1)
        page = await shown.all(found[:limit])
        return ApprovalsAnswer(approvals=page, next=page[-1].id if len(found) > limit else None)

    @router.get("/{approval_id}", dependencies=only_readers, response_model_exclude_none=True)
    async def get_approval(approval_id: str) -> ApprovalAnswer:
        """One approval, whatever became of it."""
        return await shown.one(await approvals.get(_id(approval_id)))


def _add_ask(router: APIRouter, approvals: Approvals, registry: Registry, callers: _Callers, shown: _Shown) -> None:
    asker = callers.with_role(*ASKERS, "gateway")

    @router.post("", status_code=201, response_model_exclude_none=True, openapi_extra=_body(Wish))
    async def ask(request: Request, by: Annotated[Principal, Depends(asker)]) -> ApprovalAnswer:
        """Ask for an approval; somebody else has to give it before it opens anything."""
        wish = _parse(Wish, await request.body())
        if by.roles.isdisjoint(ASKERS):
            by.require_tenant(wish.tenant)
        if registry.tenant(wish.tenant) is None:
            raise NotFound(f"tenant {wish.tenant!r} has no quota", field="tenant")
        return await shown.one(await approvals.ask(wish, by))


def _add_steps(router: APIRouter, approvals: Approvals, callers: _Callers, shown: _Shown) -> None:
    Approver = Annotated[Principal, Depends(callers.with_role("approver"))]  # noqa: N806 - a type
    Revoker = Annotated[Principal, Depends(callers.with_role(*REVOKERS))]  # noqa: N806 - a type

    @router.post("/{approval_id}/approve", response_model_exclude_none=True, openapi_extra=_body(Answer))
    async def approve(approval_id: str, request: Request, by: Approver) -> ApprovalAnswer:
        """Let it count until it expires. Whoever asked can't: another key of another name has to."""
        answer = _parse(Answer, await request.body())
        return await shown.one(await approvals.answer(_id(approval_id), "approved", by, answer.reason))

    @router.post("/{approval_id}/refuse", response_model_exclude_none=True, openapi_extra=_body(Answer))
    async def refuse(approval_id: str, request: Request, by: Approver) -> ApprovalAnswer:
        """Refuse it for good; whoever asked can't do that either."""
        answer = _parse(Answer, await request.body())
        return await shown.one(await approvals.answer(_id(approval_id), "refused", by, answer.reason))

    @router.post("/{approval_id}/revoke", response_model_exclude_none=True, openapi_extra=_body(Answer))
    async def revoke(approval_id: str, request: Request, by: Revoker) -> ApprovalAnswer:
        """Take back what was approved, at once and everywhere; again changes nothing."""
        answer = _parse(Answer, await request.body())
        return await shown.one(await approvals.revoke(_id(approval_id), by, answer.reason))


def _step(identity: UUID, step: Step, keys: Keyring) -> StepAnswer:
    told = StepAnswer(by=step.by, at=rfc3339(step.at))
    try:
        told.reason = keys.open(identity, "reason", step.reason)
    except ValueError:
        told.unreadable = True
    return told


def _body(shape: type[BaseModel]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": shape.model_json_schema()}}}}


def _parse(shape: type[Shape], body: bytes) -> Shape:
    document = strict_json.loads(body)
    if not isinstance(document, dict):
        raise BadRequest("body: expected a JSON object", field="body")
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        raise bad_field(error.errors()[0]) from None


def _id(approval_id: str) -> UUID:
    try:
        return UUID(approval_id)
    except ValueError:
        raise NotFound(f"no approval {approval_id[:64]!r}", field="approval_id") from None
