"""/approvals: who may use a sensitive model, for what and until when; asked for by one key and answered by another.

Subjects are shown as pseudonyms. Reasons are shown to whoever reads approvals with open=true, since who answers has to weigh them: that
is recorded in the log before the answer leaves. So is, soon after, whoever is refused a step or a reading by their role or for having
asked themselves; reading without reasons is not, since that shows no more than the log's own lists without what is sealed.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field, ValidationError

from app.api import strict_json
from app.api.query import known_query
from app.api.readers import Readers
from app.approvals.approval import OPEN, STANDINGS, Approval, Standing, Step
from app.approvals.approvals import Answered, Approvals
from app.approvals.store import Filters
from app.approvals.wish import Answer, Wish
from app.audit.people.subject_keys import Keyring
from app.audit.reading.log import Log
from app.auth.keys import Principal, Role
from app.clock import Clock
from app.errors import BadRequest, NotFound
from app.fields import bad_field
from app.ids import model_id, tenant_id
from app.instants import rfc3339
from app.quota.registry import Registry

Open = Annotated[bool, Query(alias="open", description="with reasons in clear; the log records that they are read")]
Shape = TypeVar("Shape", bound=BaseModel)
PAGE = 100
MAX_PAGE = 1000
READERS: tuple[Role, ...] = ("operator", "approver", "auditor", "admin")
ASKERS: tuple[Role, ...] = ("operator", "admin")
"""For any tenant; a gateway may ask for the tenants it speaks for."""
READ = "approvals"
"""How the log names a reading of these, and a step that was refused."""
REVOKERS: tuple[Role, ...] = ("approver", "operator", "admin")
_VERBS: Mapping[Answered, str] = {"approved": "approve", "refused": "refuse"}


class StepAnswer(BaseModel):
    """One step: by which key's name, when and why."""

    by: str
    at: str
    reason: str | None = Field(None, description="in clear with open=true; absent once the key of the person concerned is destroyed")
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
    warning: str | None = Field(None, description="why it changes nothing as things are, where it is open")


class ApprovalsAnswer(BaseModel):
    """One page of approvals, newest first."""

    approvals: list[ApprovalAnswer]
    next: str | None = Field(description="the `cursor` of the next page; null where nothing follows")


def approval_router(approvals: Approvals, registry: Registry, audit: Log, readers: Readers, clock: Clock) -> APIRouter:
    """The routes under /approvals. `readers` give the calling Principal; `audit` records who reads reasons."""
    router = APIRouter(prefix="/approvals", tags=["approvals"], dependencies=[Depends(known_query)])
    shown = _Shown(approvals, audit, clock)
    _add_reads(router, approvals, readers, shown)
    _add_ask(router, approvals, registry, readers, shown)
    _add_steps(router, approvals, readers, shown)
    return router


class _Shown:
    """Approvals as they are answered."""

    def __init__(self, approvals: Approvals, audit: Log, clock: Clock) -> None:
        self._approvals = approvals
        self._audit = audit
        self._clock = clock

    def closed(self, approval: Approval, keys: Keyring | None = None) -> ApprovalAnswer:
        """One approval; `keys` open its reasons."""
        return ApprovalAnswer(
            id=str(approval.id),
            tenant=approval.tenant,
            model=approval.model,
            action=approval.action,
            purpose=approval.purpose,
            subject=approval.subject,
            expires=rfc3339(approval.expires),
            state=approval.standing(self._clock.utcnow()),
            asked=_step(approval.id, approval.asked, keys),
            answered=_step(approval.id, approval.answered, keys) if approval.answered else None,
            revoked=_step(approval.id, approval.revoked, keys) if approval.revoked else None,
            warning=self._warning(approval),
        )

    def _warning(self, approval: Approval) -> str | None:
        """Told to who asks and to who answers: either may take the model for closed without it."""
        if approval.standing(self._clock.utcnow()) not in OPEN or not self._approvals.unneeded(approval):
            return None
        return (
            f"models.yaml asks for no approval of {approval.model}: requests are decided without this one, unless a rule of yours reads it. "
            f"To close {approval.model} without one, give it a sensitive section with approval: true there."
        )

    async def opened(self, approvals: list[Approval], query: Mapping[str, Any], by: Principal) -> list[ApprovalAnswer]:
        """Several with their reasons in clear, by one question for their keys; that `by` reads them is in the log before."""
        keys = await self._approvals.keyring(approvals)
        shown = [self.closed(one, keys) for one in approvals]
        await self._audit.approvals_read(query, operator=by.name, count=len(shown))
        return shown


def _add_reads(router: APIRouter, approvals: Approvals, readers: Readers, shown: _Shown) -> None:
    @router.get("", response_model_exclude_unset=True)
    async def list_approvals(
        *,
        by: Annotated[Principal, Depends(readers.with_role(READ, _searched, *READERS))],
        wanted: Annotated[Filters, Depends(_filters)],
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = PAGE,
        unseal: Open = False,
    ) -> ApprovalsAnswer:
        """Approvals, newest first, a page at a time; those that ended too."""
        found = await approvals.list(wanted, most=limit + 1)
        page = found[:limit]
        answers = await shown.opened(page, wanted.as_query, by) if unseal else [shown.closed(one) for one in page]
        return ApprovalsAnswer(approvals=answers, next=answers[-1].id if len(found) > limit else None)

    @router.get("/{approval_id}", response_model_exclude_none=True)
    async def get_approval(
        *, by: Annotated[Principal, Depends(readers.with_role(READ, _named("read"), *READERS))], approval_id: str, unseal: Open = False
    ) -> ApprovalAnswer:
        """One approval, whatever became of it."""
        found = await approvals.get(_id(approval_id))
        if not unseal:
            return shown.closed(found)
        query = {"approval_id": str(found.id), "tenant": found.tenant, "subject": found.subject}
        (answer,) = await shown.opened([found], query, by)
        return answer


def _add_ask(router: APIRouter, approvals: Approvals, registry: Registry, readers: Readers, shown: _Shown) -> None:
    asker = readers.with_role(READ, _asking, *ASKERS, "gateway")

    @router.post("", status_code=201, response_model_exclude_none=True, openapi_extra=_body(Wish))
    async def ask(request: Request, by: Annotated[Principal, Depends(asker)]) -> ApprovalAnswer:
        """Ask for an approval; somebody else has to give it before it opens anything."""
        wish = _parse(Wish, await request.body())
        if by.roles.isdisjoint(ASKERS):
            with readers.telling(READ, by, {"query": {"step": "ask", "tenant": wish.tenant}}):
                by.require_tenant(wish.tenant)
        if registry.tenant(wish.tenant) is None:
            raise NotFound(f"tenant {wish.tenant!r} has no quota", field="tenant")
        return shown.closed(await approvals.ask(wish, by))


def _add_steps(router: APIRouter, approvals: Approvals, readers: Readers, shown: _Shown) -> None:
    def caller(step: str, *roles: Role) -> Any:
        return Depends(readers.with_role(READ, _named(step), *roles))

    async def answered(step: Answered, approval_id: str, request: Request, by: Principal) -> ApprovalAnswer:
        answer = _parse(Answer, await request.body())
        identity = _id(approval_id)
        with readers.telling(READ, by, {"query": {"step": _VERBS[step], "approval_id": str(identity)}}):
            return shown.closed(await approvals.answer(identity, step, by, answer.reason))

    @router.post("/{approval_id}/approve", response_model_exclude_none=True, openapi_extra=_body(Answer))
    async def approve(approval_id: str, request: Request, by: Annotated[Principal, caller("approve", "approver")]) -> ApprovalAnswer:
        """Let it count until it expires. Whoever asked can't: another key of another name has to."""
        return await answered("approved", approval_id, request, by)

    @router.post("/{approval_id}/refuse", response_model_exclude_none=True, openapi_extra=_body(Answer))
    async def refuse(approval_id: str, request: Request, by: Annotated[Principal, caller("refuse", "approver")]) -> ApprovalAnswer:
        """Refuse it for good; whoever asked can't do that either."""
        return await answered("refused", approval_id, request, by)

    @router.post("/{approval_id}/revoke", response_model_exclude_none=True, openapi_extra=_body(Answer))
    async def revoke(approval_id: str, request: Request, by: Annotated[Principal, caller("revoke", *REVOKERS)]) -> ApprovalAnswer:
        """Take back what was approved, at once and everywhere; again changes nothing."""
        answer = _parse(Answer, await request.body())
        return shown.closed(await approvals.revoke(_id(approval_id), by, answer.reason))


def _filters(
    *,
    tenant: str | None = None,
    model: str | None = None,
    state: Annotated[Standing | None, Query(description="as it counts now")] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before")] = None,
) -> Filters:
    return Filters(None if tenant is None else tenant_id(tenant), None if model is None else model_id(model), state, cursor)


def _searched(wanted: Annotated[Filters, Depends(_filters)]) -> Mapping[str, Any]:
    """What the log is told of who may not list."""
    return {"query": wanted.as_query}


def _asking() -> Mapping[str, Any]:
    return {"query": {"step": "ask"}}


def _named(step: str) -> Callable[..., Mapping[str, Any]]:
    """What the log is told of who may not take `step`; a text that is no id is not repeated there."""

    def named(approval_id: str) -> Mapping[str, Any]:
        try:
            return {"query": {"step": step, "approval_id": str(UUID(approval_id))}}
        except ValueError:
            return {"query": {"step": step}}

    return named


def _step(identity: UUID, step: Step, keys: Keyring | None) -> StepAnswer:
    told = StepAnswer(by=step.by, at=rfc3339(step.at))
    if keys is None:
        return told
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
