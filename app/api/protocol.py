"""One connection: what a caller may send, and how long it may take, before there is a request to check a key for.

uvicorn's HTTP/1.1 protocol bounds neither the size of a head nor the time for it. Here bytes are counted as they come and
time is looked at once a second for all connections together, so that a request on the warm path pays for no timer. What
is refused is a problem+json like every error of ours, after the answers that are still owed on the same connection.
"""

from collections.abc import Iterable
from typing import Any, cast

import httptools
from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.api.problems import problem
from app.errors import BadRequest, SluiceError
from app.observability.metrics import Metrics

MAX_HEAD = 16 * 1024
"""Bytes of a request line and headers: twice the longest credentials that proxies let through."""
MAX_URL = 8 * 1024
"""Bytes; names and pages of ours need some hundreds. RFC 9110 asks every server for 8000 at least."""
MAX_PIPELINED = 100
"""Requests that wait on one connection for the answer before them; each of them holds some KiB."""
PATIENCE_MS = 10_000
"""A head takes one packet or a few; a connection that owes us the rest for longer is stalled, as a body would be."""
LINGER_MS = 1000
"""After a refusal: long enough to read it while still sending. Closing at once would reset the connection before."""


class HeadTooLarge(BadRequest):
    """The request line and headers are over the limit; reading stopped there."""

    code = "headers_too_large"
    status = 431
    hint = "Send fewer or shorter headers; a call needs Authorization, and at most a request id beside it."


class UrlTooLong(BadRequest):
    """The URL is over the limit; nothing of the request was kept."""

    code = "url_too_long"
    status = 414
    hint = "Send what is long in the body; paths and queries need some hundred bytes."


class SlowHead(BadRequest):
    """The request line and headers did not arrive within ten seconds."""

    code = "headers_timeout"
    status = 408
    hint = "Send the whole request at once; open a connection when there is something to send."


class PipelineTooLong(BadRequest):
    """More requests came on one connection than may wait there for their turn; those before were answered."""

    code = "pipeline_too_long"
    hint = "Wait for answers, or use more connections."


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with bounds. A wish to upgrade is ignored, as RFC 9110 allows: the body is a body.

    `_unbroken` counts bytes since the last step forward (headers complete, a piece of a body, its end); this bounds heads,
    trailers, chunk extensions and blank lines alike. `_owing` says that the caller has begun something and not ended it.
    """

    def __init__(self, metrics: Metrics, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._metrics = metrics
        self.url = b""
        self._unbroken = 0
        self._in_body = False
        self._owing = True
        self._held_up_since_ms: float | None = None
        self._refusal: SluiceError | None = None

    def data_received(self, data: bytes) -> None:
        """Parse what came, never more at once than a head may still be long. After a refusal it goes nowhere."""
        if self._refusal is not None:
            return
        self._unset_keepalive_if_required()
        self._owing = True
        try:
            while data:
                room = MAX_HEAD - self._unbroken
                piece, data = data[:room], data[room:]
                self._unbroken += len(piece)
                self._parse(piece)
                if self._unbroken >= MAX_HEAD:
                    raise self._too_large()
        except SluiceError as error:
            self._refuse(error)
        except httptools.HttpParserError as error:
            self._refuse(_as_ours(error))

    def _parse(self, piece: bytes) -> None:
        while piece:
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as pause:
                # The parser took the body for another protocol's bytes. It begins again without the wish.
                self.parser.feed_data(self._head_without_upgrade())
                piece = piece[pause.args[0] :]
            else:
                return

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode("ascii"))]
        lines += [b"%b: %b" % (name, value) for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        """A request begins."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise PipelineTooLong(f"connection: more than {MAX_PIPELINED} requests wait for an answer")
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A request is to be answered; its body may still come."""
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise BadRequest("method: CONNECT is for proxies", hint="Send the request itself.", field="method")
            return
        if len(self.url) > MAX_URL:
            raise self._too_large()
        self._unbroken = 0
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body; how much and for how long is the edge's to say."""
        self._unbroken = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has come whole."""
        if self.parser.should_upgrade():
            return
        self._unbroken = 0
        self._in_body = self._owing = False
        self._held_up_since_ms = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is out; a refusal that waited for it follows."""
        super().on_response_complete()
        if self._refusal is not None and not self._answering() and not self.transport.is_closing():
            self._answer(self._refusal)

    def look(self, now_ms: float) -> None:
        """Once a second: end the connection where it is the caller who has held it up for too long."""
        if not self.flow.write_paused and (not self._owing or self._answering()):
            self._held_up_since_ms = None
        elif self._held_up_since_ms is None:
            self._held_up_since_ms = now_ms
        elif now_ms - self._held_up_since_ms >= (PATIENCE_MS if self._refusal is None else LINGER_MS):
            self._give_up()

    def _give_up(self) -> None:
        in_head = self._unbroken > 0 and not self._in_body
        if in_head and self._refusal is None and not self.flow.write_paused:
            self._refuse(SlowHead(f"headers: not complete after {PATIENCE_MS / 1000:.0f} s", field="headers"))
        else:
            self.transport.abort()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.disconnected

    def _too_large(self) -> SluiceError:
        if len(self.url) > MAX_URL:
            return UrlTooLong(f"url: more than {MAX_URL} bytes", field="url")
        return HeadTooLarge(f"headers: more than {MAX_HEAD} bytes", field="headers")

    def _refuse(self, error: SluiceError) -> None:
        """Answer at once, or after the requests before; a body that turns out broken ends its own request."""
        self._refusal = error.with_traceback(None)  # its frames would keep what was sent
        self.headers = []
        self.scope = cast("HTTPScope", {})
        own = self._in_body and not self.pipeline
        if own and self.cycle.response_started:
            self.transport.close()
            return
        if own:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not self._answering():
            self._answer(error)

    def _answer(self, error: SluiceError) -> None:
        self._metrics.http_refused.labels(error.code).inc()
        answer = problem(error)
        headers = [
            *self.server_state.default_headers,
            (b"content-type", answer.content_type.encode("latin-1")),
            (b"content-length", str(len(answer.body)).encode("ascii")),
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(STATUS_LINE[answer.status] + lines + b"\r\n" + answer.body)
        self.transport.write_eof()
        self._owing, self._held_up_since_ms = True, None


def look_at(connections: Iterable[Any], now_ms: float) -> None:
    """Look at all open connections; `now_ms` is monotonic. 10 000 of them take some milliseconds."""
    for connection in list(connections):
        connection.look(now_ms)


def _as_ours(error: httptools.HttpParserError) -> SluiceError:
    if isinstance(error.__context__, SluiceError):
        return error.__context__
    if isinstance(error, httptools.HttpParserCallbackError):  # uvicorn's only step that can fail is to take the URL apart
        return BadRequest("url: neither a path nor an absolute URL in ASCII", hint="Percent-encode the path.", field="url")
    return BadRequest(f"the request is no valid HTTP/1.1: {error}", hint="Send plain HTTP/1.1; TLS and HTTP/2 end at a proxy before.")
