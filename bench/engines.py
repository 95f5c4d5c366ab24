"""A hundred engines in one process: every path that ends in /metrics is an engine's page. `python -m bench.engines PORT MODEL`."""

import asyncio
import sys

from bench.page import Page, engine_page

STEP_S = 0.02
"""An engine steps so often."""
APART = 97
"""Steps between two engines."""


class Engines(asyncio.Protocol):
    """One kept connection of a reader."""

    def __init__(self, pages: "Pages") -> None:
        self._pages = pages
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a TCP server's transports are
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            self._transport.write(self._pages.answer(int(head.split(b"/", 2)[1])))


class Pages:
    """What each engine answers at the moment."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._step = 0

    def answer(self, number: int) -> bytes:
        """The engines are at different steps, so that no two tell the same."""
        body = self._page.at(self._step + number * APART)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\ncontent-length: %d\r\n\r\n"
        return head % len(body) + body

    def advance(self) -> None:
        """One step of every engine."""
        self._step += 1


async def serve(port: int, model: str) -> None:
    pages = Pages(engine_page(model))
    server = await asyncio.get_running_loop().create_server(lambda: Engines(pages), "127.0.0.1", port)
    async with server:
        while True:
            await asyncio.sleep(STEP_S)
            pages.advance()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
