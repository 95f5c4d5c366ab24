"""One scrape of one engine: its page within a deadline and a size, or why not.

When down: the scrape names the problem (timeout, connect, status, parse); nothing of a bad answer is read.
"""

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

MOST_PAGE_BYTES = 2 * 1024 * 1024
"""A real page has 50 KB, and the most lines that are read 1 MB; more than this is no page of an engine."""
ACCEPT = "text/plain;version=0.0.4,*/*;q=0.1"
"""OpenMetrics is read where an engine insists, but not asked for: prometheus_client takes any mention of it for a wish,
whatever its q, and then writes vLLM's names with an underscore for the colon."""
_HEADERS = {"accept": ACCEPT, "accept-encoding": "identity", "user-agent": "sluice-telemetry"}


class ScrapeFailed(Exception):
    """No page; `problem` is one of timeout, connect, status, parse."""

    def __init__(self, problem: str, detail: str = "") -> None:
        super().__init__(detail or problem)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page as it came."""

    body: bytes
    content_type: str


def open_session(*, force_close: bool = False) -> aiohttp.ClientSession:
    """A session for all engines: no cookies, no proxy from the environment, no decompression.

    Connections are kept but with `force_close`: whoever calls less often than servers wait would find them closed.
    """
    connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=30, force_close=force_close)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, headers=_HEADERS)


async def fetch(session: aiohttp.ClientSession, url: str, timeout_ms: float) -> RawPage:
    """The page at `url`, redirects not followed. Raises ScrapeFailed."""
    try:
        async with asyncio.timeout(timeout_ms / 1000), session.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise ScrapeFailed("status", f"answered {response.status}")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ScrapeFailed("parse", "answered compressed, though asked not to")
            body = await _bounded(response)
            if not (body.endswith(b"\n") or _told_its_end(response)):
                raise ScrapeFailed("parse", "the page may have been cut")
            return RawPage(body, response.headers.get("content-type", ""))
    except TimeoutError:
        raise ScrapeFailed("timeout") from None
    except aiohttp.ClientPayloadError:
        raise ScrapeFailed("parse", "the page was cut") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ScrapeFailed("connect", type(error).__name__) from None


def _told_its_end(response: aiohttp.ClientResponse) -> bool:
    """Whether the answer said where it ends, and so was read whole; else it ended where the connection did, in a number maybe."""
    return "content-length" in response.headers or "chunked" in response.headers.get("transfer-encoding", "")


def place(url: str) -> str:
    """Where a url leads, for logs: host and port without a password, or the path of a socket."""
    return urlsplit(url).netloc.rpartition("@")[2] or url


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MOST_PAGE_BYTES:
            raise ScrapeFailed("parse", f"the page is larger than {MOST_PAGE_BYTES} bytes: let the engine drop metrics or labels")
        parts.append(part)
    return b"".join(parts)
