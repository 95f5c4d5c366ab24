"""Where serve listens, and where its own children reach it."""

import socket

from app.errors import ConfigError

LOOPBACK = "127.0.0.1"


def listen(address: str) -> socket.socket:
    """A socket that listens on HOST:PORT. Raises ConfigError."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        return socket.create_server((host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"listen: {address}: {error.strerror}", hint="Give another port with --port N, or stop what listens there.", field="listen"
        ) from None


def own_url(listener: socket.socket) -> str:
    """Where our own children reach us: the loopback address where we listen on all of them."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = LOOPBACK
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
