"""Talking to a running OPA: the one place that knows its client library and its HTTP answers.

When down: `Down` for a refused or lost connection and `Slow` for a call that got no answer in time, at once and without
retries; whether a kept answer may stand in is decided by policy.py.
"""

import re
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
import orjson
from opa_client.opa_async import AsyncOpaClient

from app.observability.metrics import Metrics
from app.policy.bundle import ENTRY_PATH
from app.policy.kinds import KINDS

_RULE_FILE = re.compile(rf"(?:{'|'.join(KINDS)})/([a-z0-9_]+)/")
_UNIX = "unix://"
_IDLE_S = 30.0
"""How long an idle connection is kept; OPA itself keeps them longer."""


class CallFailed(Exception):
    """A call without a usable answer; `detail` is OPA's own text, for logs and never for callers."""

    result = "down"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Down(CallFailed):
    """No connection: refused, or lost before the answer came."""


class Slow(CallFailed):
    """No answer in time."""

    result = "timeout"


class Failed(CallFailed):
    """OPA answered that a rule failed, e.g. two values of a complete rule; `rule` is the one whose file it names."""

    result = "conflict"

    def __init__(self, detail: str, rule: str | None) -> None:
        super().__init__(detail)
        self.rule = rule


class Undefined(CallFailed):
    """OPA knows no entry module: it has no bundle of ours yet."""

    result = "undefined"


class OpaClient(AsyncOpaClient):  # type: ignore[misc]  # the library has no types
    """The library's client on a session of ours: unix socket or TCP, no retries, the error's text kept.

    `url` is unix:///path/of/socket or http://host:port.
    """

    def __init__(self, url: str, *, connections: int, metrics: Metrics) -> None:
        super().__init__(retries=0)
        self._socket = url.removeprefix(_UNIX) if url.startswith(_UNIX) else None
        self._base = "http://opa" if self._socket else url.rstrip("/")
        self.root_url = f"{self._base}/{self.version}"
        self._connections = connections
        self._metrics = metrics

    async def __aenter__(self) -> Self:
        await self._init_session()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close_connection()

    async def _init_session(self) -> None:
        limits: dict[str, Any] = {"limit": self._connections, "keepalive_timeout": _IDLE_S}
        connector = aiohttp.UnixConnector(self._socket, **limits) if self._socket else aiohttp.TCPConnector(**limits)
        self._session = aiohttp.ClientSession(connector=connector, json_serialize=lambda value: orjson.dumps(value).decode())

    async def ask(self, items: dict[str, dict[str, Any]], timeout_ms: float) -> tuple[str, dict[str, Any]]:
        """Revision and answers {group: {index: {rule: outputs}}} to questions {group: {index: question}}.

        Raises Down, Slow, Failed or Undefined. A call that is given up closes its connection, so OPA stops evaluating.
        """
        with self._metrics.opa_call_seconds.time():
            try:
                answer = await self._ask(items, timeout_ms)
            except CallFailed as failure:
                self._metrics.opa_calls.labels(failure.result).inc()
                raise
        self._metrics.opa_calls.labels("ok").inc()
        return answer

    async def _ask(self, items: dict[str, dict[str, Any]], timeout_ms: float) -> tuple[str, dict[str, Any]]:
        body = orjson.dumps({"input": items})
        status, content = await self._send("POST", f"{self.root_url}/data/{ENTRY_PATH}", timeout_ms, body)
        try:
            document = orjson.loads(content)
        except orjson.JSONDecodeError:
            raise Down(f"HTTP {status} that is no JSON; is opa.url an OPA?") from None
        if status != 200:
            raise _failed(document)
        result = document.get("result")
        if not isinstance(result, dict) or "revision" not in result:
            raise Undefined("OPA has no sluice bundle")
        return result["revision"], result.get("answer", {})

    async def alive(self, timeout_ms: float) -> bool:
        """Whether OPA's server answers at all, bundle or not."""
        try:
            await self._send("GET", f"{self._base}/health", timeout_ms)
        except CallFailed:
            return False
        return True

    async def _send(self, method: str, url: str, timeout_ms: float, body: bytes | None = None) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=max(timeout_ms, 1.0) / 1000)
        headers = {"Content-Type": "application/json"}
        try:
            async with self._request(method, url, data=body, headers=headers, timeout=timeout) as response:
                return cast("int", response.status), await response.read()
        except TimeoutError:
            raise Slow("no answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Down(str(error) or type(error).__name__) from None


def _failed(document: Any) -> Failed:
    """OPA's message with the first place it names."""
    error = next(iter(document.get("errors") or [{}]))
    message = str(error.get("message") or document.get("message") or "error")
    place = error.get("location") or {}
    file = str(place.get("file", ""))
    rule = _RULE_FILE.search(file)
    return Failed(f"{file}:{place.get('row')}: {message}" if file else message, rule.group(1) if rule else None)
