"""One whole HTTP answer as a value, and how it is sent."""

from dataclasses import dataclass

from starlette.types import Send

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and headers (lower-case names, latin-1 values)."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send, *extra: tuple[bytes, bytes]) -> None:
        """Send it in one start and one body message."""
        headers = [
            (b"content-type", self.content_type.encode("latin-1")),
            (b"content-length", str(len(self.body)).encode("ascii")),
            *self.headers,
            *extra,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
