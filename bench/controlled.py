"""An engine whose page tells what it is told to, and which takes another size of its batch; it notes when it is asked and told."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

GIVE_UP_S = 10.0


class Controlled:
    """The engine of one model, served by threads of this process until the end of the block."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._kv_ratio = 0.0
        self._pages = 0
        self._read_s: float | None = None
        self._news = threading.Condition()
        self._told: list[tuple[int, float]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def change(self, kv_ratio: float) -> tuple[float, float]:
        """Tell this share of the cache; milliseconds until a page with it was read, and from then until another batch was told.

        Raises RuntimeError after GIVE_UP_S.
        """
        with self._news:
            self._kv_ratio, self._read_s, begun_s = kv_ratio, None, time.perf_counter()
            told = len(self._told)
            if not self._news.wait_for(lambda: self._read_s is not None and len(self._told) > told, GIVE_UP_S):
                raise RuntimeError(f"no other max_num_seqs was told within {GIVE_UP_S:g} s")
            read_s = self._read_s or begun_s
            return (read_s - begun_s) * 1000, (self._told[-1][1] - read_s) * 1000

    def wait_until_told(self) -> None:
        """Wait for the first figure. Raises RuntimeError after GIVE_UP_S."""
        with self._news:
            if not self._news.wait_for(lambda: bool(self._told), GIVE_UP_S):
                raise RuntimeError(f"no max_num_seqs was told within {GIVE_UP_S:g} s")

    def page(self) -> bytes:
        """The next page; its counter moves, so that the engine never looks frozen."""
        with self._news:
            self._pages += 1
            self._read_s = self._read_s or time.perf_counter()
            self._news.notify_all()
            labels = f'{{model_name="{self._model}"}}'
            told = {"kv_cache_usage_perc": self._kv_ratio, "num_requests_waiting": 0, "num_requests_running": 3}
            told["generation_tokens_total"] = self._pages
            return "".join(f"vllm:{name}{labels} {value}\n" for name, value in told.items()).encode()

    def control(self, max_num_seqs: int) -> None:
        """Another size of the batch. The same again, as it is repeated for engines that restarted, is no news."""
        with self._news:
            if not self._told or self._told[-1][0] != max_num_seqs:
                self._told.append((max_num_seqs, time.perf_counter()))
                self._news.notify_all()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(engine: Controlled) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # two writes an answer: with it each would wait 40 ms for the other

        def do_GET(self) -> None:
            self._answer(engine.page())

        def do_POST(self) -> None:
            engine.control(int(json.loads(self.rfile.read(int(self.headers["content-length"])))["max_num_seqs"]))
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: each page would be a line."""

    return Handler
