"""Once per request id: an admitted request is answered again from its lease record, charged and started only once.

A request id is scoped by credential and tenant and bound to a digest of the body. A refusal is decided anew.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.auth.keys import Principal
from app.decision.decide import Decider
from app.decision.decision import replayed
from app.decision.request import Asking, DecideRequest
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as it goes over the wire; `lease_id` where this very call admitted the request."""

    body: bytes
    lease_id: str | None = None


class Once:
    """Puts the request id in front of the decision."""

    def __init__(self, decider: Decider, limiter: MemoryLimiter, metrics: Metrics) -> None:
        self._decider = decider
        self._limiter = limiter
        self._metrics = metrics
        self._running: dict[tuple[str, ...], asyncio.Event] = {}

    async def answer(
        self, request: DecideRequest, document: Any, caller: Principal, *, peer: str | None = None, explain: bool = False
    ) -> Given:
        """The answer to one request. Raises Conflict where the request id came with another body before."""
        if request.request_id is None:
            return await self._decide(Asking(request, caller, peer=peer), explain=explain)
        key = (caller.key_id, request.tenant, request.request_id)
        digest = hashlib.blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
        # Two calls with one id at the same moment: the second waits for the first and is then a replay of it.
        while (running := self._running.get(key)) is not None:
            await running.wait()
        kept = await self._limiter.recall(key, digest)
        if kept is not None:
            self._metrics.replays.inc()
            return Given(replayed(kept))
        self._running[key] = done = asyncio.Event()
        try:
            return await self._decide(Asking(request, caller, key, digest, peer), explain=explain)
        finally:
            del self._running[key]
            done.set()

    async def answers(
        self, requests: Sequence[DecideRequest], documents: Sequence[Any], caller: Principal, *, peer: str | None = None
    ) -> list[Given]:
        """Answers in the order of the requests, spent in that order; what is missing of the policies is asked together first.

        All or none: where one item is a Conflict, what the others before it were given is given back.
        """
        await self._decider.prefetch(requests)
        answers: list[Given] = []
        try:
            for request, document in zip(requests, documents, strict=True):
                answers.append(await self.answer(request, document, caller, peer=peer))
        except BaseException:
            for given in answers:
                await self.give_back(given, caller)
            raise
        return answers

    async def give_back(self, given: Given, caller: Principal) -> None:
        """Cancel the lease of an answer that nobody received."""
        if given.lease_id is not None:
            await self._limiter.cancel(given.lease_id, caller.key_id)

    async def _decide(self, asking: Asking, *, explain: bool) -> Given:
        decision = await self._decider.decide(asking, explain=explain)
        body = decision.json()
        if not decision.allow:
            return Given(body)
        if asking.key is not None:
            await self._limiter.record(decision.facts.id, body)
        return Given(body, decision.facts.id)
