"""A gateway under load: asks for each arrival, streams what was admitted, settles it. `python -m bench.gateway TRAFFIC REPORT`.

Arrivals never wait for answers (open loop). A token is counted when its event is here, and no event is parsed beyond that.
"""

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from bench.arrivals import Arrival
from bench.traffic import Call, End, Report, Traffic

TOKEN, LOST = b'"text"', b'"error"'
"""What an event of a stream holds: a token, or the end of it because the engine lost the request."""
DECIDE = aiohttp.ClientTimeout(total=0.5)
SILENT = aiohttp.ClientTimeout(total=None, sock_read=60)
KEPT_S = 2.0
"""Servers close idle connections after 5 s; one that is closed while a request is on its way loses it."""
DIGITS = 4
"""Moments are kept to a tenth of a millisecond."""


class Gateway:
    """One tenant's requests for one model."""

    def __init__(self, traffic: Traffic, session: aiohttp.ClientSession) -> None:
        self._traffic = traffic
        self._session = session
        self._sluice = f"http://127.0.0.1:{traffic.sluice_port}"

    async def run(self) -> list[Call]:
        """Every arrival in its time."""
        async with asyncio.TaskGroup() as calls:
            tasks = []
            for arrival in self._traffic.arrivals:
                await asyncio.sleep(max(0.0, arrival.due_s - self._now()))
                tasks.append(calls.create_task(self._call(arrival)))
        return [task.result() for task in tasks]

    def _now(self) -> float:
        return round(time.perf_counter() - self._traffic.start, DIGITS)

    async def _call(self, arrival: Arrival) -> Call:
        sent_s = self._now()
        try:
            decision = await self._decide(arrival)
        except (aiohttp.ClientError, TimeoutError) as error:
            return Call(arrival, sent_s, self._now(), self._now(), "failed", f"decision: {type(error).__name__}")
        decided_s = self._now()
        if not decision["allow"]:
            return Call(arrival, sent_s, decided_s, decided_s, "refused", _reason(decision))
        tokens_s: list[float] = []
        end, reason = await self._stream(arrival, decision["node"], tokens_s)
        ended_s = self._now()
        await self._settle(decision["decision_id"], arrival, end, tokens_s)
        return Call(arrival, sent_s, decided_s, ended_s, end, reason, tuple(tokens_s))

    async def _decide(self, arrival: Arrival) -> dict[str, Any]:
        own = self._traffic
        body = {"tenant": own.tenant, "model": own.model, "prompt_tokens": arrival.prompt_tokens, "max_tokens": arrival.max_tokens}
        async with self._session.post(f"{self._sluice}/decide", json=body, headers=own.headers, timeout=DECIDE) as answer:
            answer.raise_for_status()
            decision: dict[str, Any] = await answer.json()
            return decision

    async def _stream(self, arrival: Arrival, node: str | None, tokens_s: list[float]) -> tuple[End, str]:
        """Stream until the model ends, the engine fails, or the client leaves; a node is chosen here where none was named."""
        engines = self._traffic.engines
        port = engines[node] if node else next(iter(engines.values()))
        body = {"model": self._traffic.model, "prompt": [0] * arrival.prompt_tokens, "max_tokens": arrival.generated, "stream": True}
        patience_s = arrival.due_s + self._traffic.patience_s - self._now()
        try:
            async with asyncio.timeout(patience_s) as patience:
                async with self._session.post(f"http://127.0.0.1:{port}/v1/completions", json=body, timeout=SILENT) as answer:
                    answer.raise_for_status()
                    async for part in answer.content.iter_any():
                        if LOST in part:
                            return "failed", "lost"
                        tokens_s += [self._now()] * part.count(TOKEN)
                        if tokens_s:
                            patience.reschedule(None)
        except TimeoutError:
            return "aborted", "patience"
        except aiohttp.ClientError as error:
            return "failed", str(getattr(error, "status", type(error).__name__))
        return ("completed", "") if len(tokens_s) == arrival.generated else ("failed", "cut")

    async def _settle(self, lease: str, arrival: Arrival, end: End, tokens_s: list[float]) -> None:
        """Report what it really took. Where that fails the lease expires, as with any gateway."""
        report: dict[str, Any] = {"prompt_tokens": arrival.prompt_tokens, "completion_tokens": len(tokens_s), "outcome": end}
        if tokens_s:
            report["ttft_ms"] = (tokens_s[0] - arrival.due_s) * 1000
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with self._session.post(f"{self._sluice}/leases/{lease}/settle", json=report, headers=self._traffic.headers) as answer:
                await answer.read()


def _reason(decision: dict[str, Any]) -> str:
    """The code of the first reason, and the rule that gave it where there is one."""
    first = decision["reasons"][0]
    return " ".join(filter(None, [first["code"], first.get("rule")]))


async def serve(traffic: Traffic) -> Report:
    cpu_s, began = time.process_time(), time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S)) as session:
        calls = await Gateway(traffic, session).run()
    return Report(tuple(calls), time.process_time() - cpu_s, time.perf_counter() - began)


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    traffic = Traffic(**{**document, "arrivals": tuple(Arrival(**arrival) for arrival in document["arrivals"])})
    Path(sys.argv[2]).write_text(json.dumps(asdict(uvloop.run(serve(traffic)))), "utf-8")


if __name__ == "__main__":
    main()
