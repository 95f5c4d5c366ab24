"""A small gateway: ask Sluice, stream from the node it names, renew while it runs, report what it took.

.venv/bin/python examples/gateway.py "$KEY" "a prompt"

What it does and what it leaves out: docs/how-to/connect-a-gateway.md.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

SLUICE = "http://127.0.0.1:8080"
NODES = {"vllm-0": "http://127.0.0.1:9001", "vllm-1": "http://127.0.0.1:9002"}
DECIDE = aiohttp.ClientTimeout(total=0.5)  # a decision takes milliseconds; past this something is wrong
ENGINE = aiohttp.ClientTimeout(total=None, sock_connect=2, sock_read=60)  # a stream may last, but not be silent for long
REPORT_WAITS_S = (0, 0.2, 0.5, 1, 2)  # before each try to report an end; where all fail, the lease expires
MET_BY_SLUICE = {"audit"}
REMEMBERED = 10_000  # decisions begun here, so that none of them is begun again


class Refused(Exception):
    """Answer the client with `status` and `headers`; start nothing."""

    def __init__(self, status: int, headers: dict[str, str], reasons: list[dict[str, Any]]) -> None:
        super().__init__(status, reasons)
        self.status, self.headers, self.reasons = status, headers, reasons


class Misused(Exception):
    """Sluice refuses our own key or question. Tell whoever runs the gateway; the client gets 500 and no detail."""


class EngineFailed(Exception):
    """The engine refused, or its stream broke. Answer the client 502 where nothing has been sent yet."""


@dataclass
class Call:
    """An admitted call: `headers` are for the client; `outcome` is None while no engine has begun it."""

    lease: str
    node: str | None
    headers: dict[str, str]
    outcome: str | None = None
    usage: dict[str, int] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> list[str]:
        """The texts of one event of the stream, counted; the engine's own usage, in the last, beats our count."""
        if "error" in event:
            raise EngineFailed(event["error"]["message"])
        if event.get("usage"):
            self.usage = {name: event["usage"][name] for name in ("prompt_tokens", "completion_tokens")}
        elif event["choices"]:
            self.usage["completion_tokens"] = self.usage.get("completion_tokens", 0) + 1
        return [choice["text"] for choice in event["choices"]]


class Gateway:
    """Streams the completions that Sluice admits."""

    def __init__(self, session: aiohttp.ClientSession, key: str, sluice: str = SLUICE, nodes: dict[str, str] = NODES) -> None:
        self._session, self._sluice, self._nodes = session, sluice, nodes
        self._key = {"Authorization": f"Bearer {key}"}
        self._begun: deque[str] = deque(maxlen=REMEMBERED)

    @contextlib.asynccontextmanager
    async def admit(self, request: dict[str, Any]) -> AsyncIterator[Call]:
        """Hold a lease for a request (the body of POST /decide) and report its end. Raises Refused, Misused."""
        decision = await self._decide({"request_id": str(uuid.uuid4()), **request})
        if not decision["allow"]:
            raise Refused(decision["status"], decision["headers"], decision["reasons"])
        call = Call(decision["decision_id"], decision["node"], decision["headers"])
        if decision["replayed"] and call.lease in self._begun:
            raise Refused(409, {}, [{"code": "already_begun", "message": "this request_id is running here, or has run"}])
        self._begun.append(call.lease)
        renewing = asyncio.create_task(self._renew(call.lease, decision["lease"]["expires_in_ms"] / 3000))
        try:
            for code in {each["code"] for each in decision["obligations"]} - MET_BY_SLUICE:
                raise Refused(501, {}, [{"code": "obligation_unmet", "message": f"this gateway has no way to {code}"}])
            yield call
        finally:
            renewing.cancel()
            await asyncio.shield(self._end(call))

    async def stream(self, call: Call, body: dict[str, Any]) -> AsyncGenerator[str, None]:
        """The pieces of one completion; close it when the client leaves, and the engine stops too. Raises EngineFailed."""
        if call.node not in self._nodes:  # null where no engine is seen: a gateway of your own may know better
            raise EngineFailed(f"no address is known for node {call.node!r}; give --node NAME=URL")
        node = self._nodes[call.node]
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        call.outcome = "aborted"  # by a client that leaves, unless something else turns out
        try:
            async with self._session.post(f"{node}/v1/completions", json=body, raise_for_status=True, timeout=ENGINE) as answer:
                async for line in answer.content:
                    if line.startswith(b"data: {"):
                        for piece in call.take(json.loads(line[6:])):
                            yield piece
                    elif line.startswith(b"data: [DONE]"):
                        call.outcome = "completed"
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientResponseError) as error:
            if getattr(error, "status", 500) < 500:
                call.outcome = None  # refused: nothing has begun, and the engine is well
            else:
                call.outcome = "failed"  # five of these in a row, and Sluice sends nobody there but a probe
                call.usage = {"prompt_tokens": 0, "completion_tokens": 0}
            raise EngineFailed(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, EngineFailed) as error:
            call.outcome = "failed"
            raise EngineFailed(str(error)) from error
        if call.outcome != "completed":
            call.outcome = "failed"
            raise EngineFailed("the stream broke off before its end")

    async def _decide(self, body: dict[str, Any]) -> Any:
        """One decision; asked for once more under the same request_id where no answer came."""
        for _ in range(2):
            with contextlib.suppress(aiohttp.ClientConnectionError, TimeoutError):
                async with self._session.post(f"{self._sluice}/decide", json=body, headers=self._key, timeout=DECIDE) as answer:
                    if answer.status == 200:
                        return await answer.json()
                    if answer.status != 503:
                        problem = await answer.json(content_type=None)
                        raise Misused(f"{answer.status} {problem['detail']}. {problem['hint']}")
        raise Refused(503, {"Retry-After": "3"}, [{"code": "no_decision", "message": f"no answer from {self._sluice}"}])

    async def _renew(self, lease: str, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            await self._tell(lease, "renew", {})

    async def _end(self, call: Call) -> None:
        """Give everything back where no engine began, else say what was used; again until Sluice has answered."""
        verb, report = ("settle", {"outcome": call.outcome, **call.usage}) if call.outcome else ("cancel", {})
        for wait_s in REPORT_WAITS_S:
            await asyncio.sleep(wait_s)
            if await self._tell(call.lease, verb, report):
                return

    async def _tell(self, lease: str, verb: str, body: dict[str, Any]) -> bool:
        """Whether Sluice answered; a lease that it has forgotten (404) needs no more telling."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with self._session.post(f"{self._sluice}/leases/{lease}/{verb}", json=body, headers=self._key, timeout=DECIDE) as answer:
                return answer.status < 500
        return False


async def answer(session: aiohttp.ClientSession, options: argparse.Namespace) -> None:
    """Show what a client of this gateway would get: status, headers, and the text as it comes."""
    gateway = Gateway(session, options.key, options.sluice, dict(options.node) or NODES)
    body = {"model": options.model, "prompt": options.prompt, "max_tokens": options.max_tokens}
    asked = {"tenant": options.tenant, "model": options.model, "prompt_tokens": len(options.prompt) // 4 + 1}
    request = {**asked, "max_tokens": options.max_tokens, "stream": True}
    async with gateway.admit(request) as call, contextlib.aclosing(gateway.stream(call, body)) as pieces:
        first = await anext(pieces)
        show(200, call.headers)
        print(first, end="", flush=True)
        async for piece in pieces:
            print(piece, end="", flush=True)
    print()


def show(status: int, headers: dict[str, str]) -> None:
    """The head of an answer."""
    print(status, *(f"{name}: {value}" for name, value in headers.items()), sep="\n", end="\n\n", flush=True)


def named_url(text: str) -> tuple[str, str]:
    """NAME=URL as a pair."""
    name, _, url = text.partition("=")
    if not name or not url:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=URL")
    return name, url


def arguments() -> argparse.ArgumentParser:
    """What the command line takes."""
    parser = argparse.ArgumentParser(description="Stream one completion as a gateway does that asks Sluice first.")
    parser.add_argument("key", metavar="KEY", help="a key of the role gateway")
    parser.add_argument("prompt", metavar="PROMPT")
    parser.add_argument("--sluice", metavar="URL", default=SLUICE, help=f"where Sluice listens ({SLUICE})")
    parser.add_argument(
        "--node", metavar="NAME=URL", type=named_url, action="append", default=[], help="where an engine listens; repeatable"
    )
    parser.add_argument("--tenant", default="tenant-prod-a", help="whose quota it is (tenant-prod-a)")
    parser.add_argument("--model", default="llama-3-8b", help="which model (llama-3-8b)")
    parser.add_argument("--max-tokens", type=int, default=20, help="how many tokens at most (20)")
    return parser


async def main(options: argparse.Namespace) -> str | None:
    """One completion; what went wrong, or None."""
    async with aiohttp.ClientSession() as session:
        try:
            await answer(session, options)
        except Refused as refused:
            show(refused.status, refused.headers)
            return f"refused: {json.dumps(refused.reasons)}"
        except Misused as error:
            show(500, {})
            return f"Sluice refuses this gateway: {error}"
        except EngineFailed as error:
            show(502, {})
            return f"the engine failed: {error}"
    return None


if __name__ == "__main__":
    sys.exit(asyncio.run(main(arguments().parse_args())))
