"""A load: what is sent, how fast, and what came of it. A generator process of its own makes it (see generator.py)."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

GRACE_S = 30.0
"""A generator that needs this much longer than its load lasts is stuck."""
CLOSED = 0.0
"""The rate of a closed loop: each connection sends as soon as it has its answer."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests to one target on the loopback address.

    In a body `{n}` stands for the number of the request and `{k}` for that number modulo `span`, each eight digits wide.
    """

    port: int
    path: str
    bodies: tuple[str, ...]
    weights: tuple[float, ...]
    """How often each body is drawn."""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 2.0
    rate: float = CLOSED
    """Requests a second, at random times (Poisson) that never wait for answers; CLOSED: as fast as answers come."""
    connections: int = 4
    first: int = 0
    """The number of the first request."""
    most: int = 2**62
    """The load ends after so many requests, however long it lasts."""
    span: int = 1
    seed: int = 1
    settle: bool = False
    """Settle the lease of each admitted request on the same connection, as a gateway does; settles are not answers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a load. Latencies count from the moment at which a request was meant to be sent."""

    answers: int
    allowed: int
    """Answers that hold `"allow":true`, which only those of decisions do; several in one batch."""
    failed: int
    """Answers with another HTTP status than 200."""
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    late_p99_ms: float
    """How late the generator itself was; part of every latency above."""
    cpu_s: float
    """CPU time of the generator."""
    odd: str
    """The first answer that was no success or a refusal; empty where there was none."""


class Running:
    """A load under way."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._process = subprocess.Popen([sys.executable, "-m", "bench.generator"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def outcome(self) -> Outcome:
        """Wait until it is over. Raises RuntimeError where the generator failed."""
        try:
            out, _ = self._process.communicate(json.dumps(asdict(self._load)).encode(), self._load.seconds + GRACE_S)
        finally:
            self._process.kill()
        if self._process.returncode != 0:
            raise RuntimeError(f"the load on port {self._load.port} failed; see the lines above")
        return Outcome(**json.loads(out))
