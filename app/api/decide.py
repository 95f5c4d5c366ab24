"""The hot routes: /decide, /decide/batch and the leases. Parse, call one function, render; no framework in between."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import orjson
from pydantic import BaseModel, ValidationError

from app.api import strict_json
from app.api.answer import Answer
from app.api.edge import MAX_BATCH_BODY, Call, Handler, gone
from app.api.problems import MethodNotAllowed
from app.auth.keys import Role
from app.decision.leases import Leases
from app.decision.once import Once
from app.decision.request import MAX_BATCH, DecideRequest, RenewRequest, SettleRequest
from app.errors import BadRequest
from app.fields import bad_field

Shape = TypeVar("Shape", bound=BaseModel)
GATEWAY: tuple[Role, ...] = ("gateway", "admin")
"""Roles that may ask for decisions."""


class HotRoutes:
    """Handlers by path; `match` is what the edge asks first."""

    def __init__(self, once: Once, leases: Leases) -> None:
        self._once = once
        self._leases = leases
        self._fixed: Mapping[bytes, Handler] = {b"/decide": self.decide, b"/decide/batch": self.batch}
        self._lease: Mapping[bytes, Handler] = {b"settle": self.settle, b"renew": self.renew, b"cancel": self.cancel}

    def match(self, method: str, path: bytes) -> Handler | None:
        """The handler of a hot route, or None. Raises MethodNotAllowed for a hot path with another method."""
        handler = self._fixed.get(path)
        if handler is None and path.startswith(b"/leases/"):
            parts = path.split(b"/")
            handler = self._lease.get(parts[3]) if len(parts) == 4 else None
        if handler is not None and method != "POST":
            raise MethodNotAllowed(method, allow="POST")
        return handler

    async def decide(self, call: Call) -> Answer:
        """POST /decide[?explain]: one decision. A caller that has hung up meanwhile gives back what was spent."""
        document = strict_json.loads(call.body)
        request = _parse(DecideRequest, document)
        call.principal.require(*GATEWAY)
        call.principal.require_tenant(request.tenant)
        await _still_there(call)
        answer = await self._once.answer(request, document, call.principal, peer=call.peer, explain="explain" in call.query)
        if gone(call.receive):
            await self._once.give_back(answer, call.principal)
        return Answer(200, answer.body)

    async def batch(self, call: Call) -> Answer:
        """POST /decide/batch {requests: [...]}: up to 256 decisions in the same order; a bad item refuses the whole batch uncharged."""
        document = strict_json.loads(call.body, max_bytes=MAX_BATCH_BODY)
        items = document.get("requests") if isinstance(document, dict) else None
        if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH:
            raise BadRequest(f"requests: expected a list of 1 to {MAX_BATCH} requests", field="requests")
        requests = [_parse(DecideRequest, item, f"requests[{index}]") for index, item in enumerate(items)]
        call.principal.require(*GATEWAY)
        for tenant in {request.tenant for request in requests}:
            call.principal.require_tenant(tenant)
        await _still_there(call)
        answers = await self._once.answers(requests, items, call.principal, peer=call.peer)
        if gone(call.receive):
            for answer in answers:
                await self._once.give_back(answer, call.principal)
        return Answer(200, b'{"decisions":[' + b",".join(answer.body for answer in answers) + b"]}")

    async def settle(self, call: Call) -> Answer:
        """POST /leases/{id}/settle: what the call really took; once, and the same again changes nothing."""
        report = _parse(SettleRequest, strict_json.loads(call.body))
        call.principal.require(*GATEWAY)
        return _json(await self._leases.settle(_lease_id(call.path), call.principal, report))

    async def renew(self, call: Call) -> Answer:
        """POST /leases/{id}/renew: a longer life for a call that still runs."""
        wish = _parse(RenewRequest, strict_json.loads(call.body) if call.body else {})
        call.principal.require(*GATEWAY)
        return _json(await self._leases.renew(_lease_id(call.path), call.principal, wish))

    async def cancel(self, call: Call) -> Answer:
        """POST /leases/{id}/cancel: the call never started; everything is given back."""
        call.principal.require(*GATEWAY)
        return _json(await self._leases.cancel(_lease_id(call.path), call.principal))


class CallerGone(BadRequest):
    """The caller hung up before it was answered, so nothing was decided (A3)."""

    code = "caller_gone"
    hint = "Nobody reads this: the connection is closed. It is counted, as a sign of callers that give up."


async def _still_there(call: Call) -> None:
    """Let the loop read once what has come since the body, so that a hang-up that is already here is seen. Raises CallerGone."""
    await asyncio.sleep(0)
    if gone(call.receive):
        raise CallerGone("the caller has hung up")


def _parse(shape: type[Shape], document: Any, prefix: str = "") -> Shape:
    if not isinstance(document, dict):
        raise BadRequest(f"{prefix or 'body'}: expected a JSON object", field=prefix or "body")
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        raise bad_field(error.errors()[0], prefix) from None


def _lease_id(path: bytes) -> str:
    return unquote_to_bytes(path.split(b"/")[2]).decode("utf-8", "replace")


def _json(document: dict[str, Any]) -> Answer:
    return Answer(200, orjson.dumps(document))
