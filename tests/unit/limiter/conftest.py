"""Small builders: a limiter on a clock moved by hand, and charges that name only what a test is about."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from app.clock import ManualClock
from app.limiter.charge import Bucket, Charge
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics

SCOPE = "key-1"


def bucket(dimension: str, limit: float, kind: str = "tenant", owner: tuple[str, ...] = ("a",), **rest: Any) -> Bucket:
    """One bucket, of tenant a unless said otherwise."""
    return Bucket(kind, (kind, *owner), dimension, limit, **rest)


@dataclass
class Desk:
    """A limiter, its clock and its metrics."""

    clock: ManualClock = field(default_factory=ManualClock)
    metrics: Metrics = field(default_factory=Metrics)
    keep_ms: float = 60_000.0
    records_bytes: int = 96 * 2**20
    ids: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.limiter = MemoryLimiter(self.clock, keep_ms=self.keep_ms, records_bytes=self.records_bytes, metrics=self.metrics)

    def charge(self, *buckets: Bucket, **rest: Any) -> Charge:
        """A charge with a fresh lease id; 10 prompt tokens and 50 reserved unless said otherwise."""
        values = {"prompt_tokens": 10, "max_tokens": 50, "scope": SCOPE, "tenant": "a", "model": "m"} | rest
        return Charge(lease_id=f"lease-{next(self.ids)}", buckets=buckets, **values)

    async def spend(self, *buckets: Bucket, **rest: Any) -> Any:
        """Spend a fresh charge."""
        return await self.limiter.spend(self.charge(*buckets, **rest))


@pytest.fixture
def desk() -> Desk:
    return Desk()
