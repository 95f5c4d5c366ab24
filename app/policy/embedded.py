"""Our own OPA: a child of serve on a unix socket, fed by our bundle endpoint.

When down: the launcher starts it again; it answers from its persisted bundle at once. What a pause means: policy.py.
"""

import asyncio
from pathlib import Path

import yaml

from app import private_files
from app.observability.metrics import Metrics
from app.policy.loader import BUNDLE_NAME
from app.policy.opa import OpaClient
from app.processes import Child, Kept, Launcher

BUNDLE_PATH = f"/bundles/{BUNDLE_NAME}.tar.gz"
LONG_POLL_S = 30
"""How long one poll stays open; a change answers it at once."""

RETRY_S = {"min_delay_seconds": 1, "max_delay_seconds": 2}
"""Pause after a poll that failed; with long polling there is none after one that did not."""

_LOOK_S = 0.01


def opa_config(bundle_url: str, token: str, persist: Path | None) -> dict[str, object]:
    """The configuration of an OPA that loads our bundle from `bundle_url` (http://host:port) and reports its status there.

    No decision log: our own log proves what was decided, and OPA's costs 20 ms at the 99th percentile.
    """
    polling = {**RETRY_S, "long_polling_timeout_seconds": LONG_POLL_S}
    return {
        "services": {"sluice": {"url": bundle_url, "credentials": {"bearer": {"token": token}}}},
        "bundles": {BUNDLE_NAME: {"service": "sluice", "resource": BUNDLE_PATH, "polling": polling, "persist": persist is not None}},
        "status": {"service": "sluice"},
        **({"persistence_directory": str(persist)} if persist else {}),
    }


async def start_opa(
    launcher: Launcher, metrics: Metrics, *, binary: Path, sockets: Path, persist: Path, bundle_url: str, token: str
) -> Kept:
    """Start OPA and wait until it answers at `opa_url(sockets)`. Start it after `bundle_url` listens.

    `sockets` is a private folder (0700); `persist` is where the last good bundle outlives a restart. Raises ChildFailed.
    """
    config = sockets / "opa.yaml"
    private_files.replace(config, yaml.safe_dump(opa_config(bundle_url, token, persist)).encode())
    url = opa_url(sockets)

    async def ready(_: Child) -> None:
        async with OpaClient(url, connections=1, metrics=metrics) as client:
            while not await client.alive(timeout_ms=1000):  # noqa: ASYNC110 - another program's readiness has no event
                await asyncio.sleep(_LOOK_S)

    return await launcher.keep(
        "opa",
        [
            binary,
            "run",
            "--server",
            f"--addr={url}",
            f"--config-file={config}",
            "--log-level=error",
            "--skip-version-check",
        ],
        ready=ready,
    )


def opa_url(sockets: Path) -> str:
    """Address of our own OPA."""
    return f"unix://{sockets / 'opa.sock'}"
