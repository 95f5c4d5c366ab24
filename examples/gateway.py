"""A minimal gateway: ask Sluice, stream from the node it names, renew while it runs, report what it took.

python examples/gateway.py KEY "a prompt"
"""

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp

SLUICE = "http://127.0.0.1:8080"
NODES = {"vllm-0": "http://127.0.0.1:9001", "vllm-1": "http://127.0.0.1:9002"}
DECIDE = aiohttp.ClientTimeout(total=0.5)  # a decision takes milliseconds; past this something is wrong
RENEW_S = 10  # three times within the life of a lease


class Refused(Exception):
    """Answer the client with `status` and `headers`; start nothing."""

    def __init__(self, status: int, headers: dict[str, str], reasons: list[dict[str, Any]]) -> None:
        super().__init__(status, reasons)
        self.status, self.headers, self.reasons = status, headers, reasons


class Gateway:
    """Streams the completions that Sluice admits."""

    def __init__(self, session: aiohttp.ClientSession, key: str, sluice: str = SLUICE, nodes: dict[str, str] = NODES) -> None:
        self._session, self._sluice, self._nodes = session, sluice, nodes
        self._key = {"Authorization": f"Bearer {key}"}

    async def stream(self, tenant: str, model: str, prompt: str, max_tokens: int) -> AsyncGenerator[str, None]:
        """The pieces of one completion; close it when the client leaves, and the engine stops too. Raises Refused."""
        asked = {"tenant": tenant, "model": model, "prompt_tokens": len(prompt) // 4 + 1, "max_tokens": max_tokens, "stream": True}
        decision = await self._decide({**asked, "request_id": str(uuid.uuid4())})
        if not decision["allow"]:
            raise Refused(decision["status"], decision["headers"], decision["reasons"])
        lease = decision["decision_id"]
        report: dict[str, Any] = {"outcome": "failed", "completion_tokens": 0}
        renewing = asyncio.create_task(self._renew(lease))
        try:
            node = self._nodes.get(decision["node"]) or next(iter(self._nodes.values()))
            body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "stream": True}
            async with self._session.post(f"{node}/v1/completions", json=body, raise_for_status=True) as answer:
                report["outcome"] = "aborted"  # unless the stream comes to its end
                async for line in answer.content:
                    if line.startswith(b"data: {"):
                        report["completion_tokens"] += 1
                        yield json.loads(line[6:])["choices"][0]["text"]
            report["outcome"] = "completed"
        finally:
            renewing.cancel()
            await asyncio.shield(self._lease(lease, "settle", report))

    async def _decide(self, body: dict[str, Any]) -> Any:
        """One decision; asked for once more under the same request_id where no answer came."""
        for _ in range(2):
            with contextlib.suppress(aiohttp.ClientConnectionError, TimeoutError):
                async with self._session.post(f"{self._sluice}/decide", json=body, headers=self._key, timeout=DECIDE) as answer:
                    if answer.status != 503:
                        answer.raise_for_status()  # our own key or body is wrong
                        return await answer.json()
        raise Refused(503, {"Retry-After": "3"}, [{"code": "no_decision"}])

    async def _renew(self, lease: str) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            await self._lease(lease, "renew", {})

    async def _lease(self, lease: str, verb: str, body: dict[str, Any]) -> None:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):  # lost reports cost the reservation: the lease expires
            async with self._session.post(f"{self._sluice}/leases/{lease}/{verb}", json=body, headers=self._key, timeout=DECIDE):
                pass


async def _main(key: str, prompt: str) -> None:
    async with aiohttp.ClientSession() as session:
        async for piece in Gateway(session, key).stream("tenant-prod-a", "llama-3-8b", prompt, max_tokens=20):
            print(piece, end="", flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
