"""What one bucket counts: a rate refills with time, a hold is given back when its lease ends, a size keeps nothing.

A meter is asked first and charged after, so that a request passes every bucket or touches none. A price is in the
meter's own unit and is kept in the lease: milliseconds of a rate (gcra.py), a whole number of what is held.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from math import ceil
from typing import ClassVar

from app.limiter import gcra
from app.limiter.charge import ROUNDING, Bucket, Level, Refusal
from app.limiter.holds import Holds
from app.limiter.lease import Lease
from app.limiter.ledger import Ledger

SHARED_KINDS = ("site", "model")
"""Buckets that callers under different terms share: one caller's limit must not rewrite what the others spent."""

KEPT_IDLE = 1024
"""Meters below which idle ones stay: making one costs more than the few hundred bytes it takes."""

LOOKS_PER_NEW = 2
"""Meters looked at for each one made: idle ones then stay a bounded share of all, at a constant cost a request."""


class Meter(ABC):
    """One bucket's state, and the bucket as it was last asked. The two refusals that need no counter live here."""

    __slots__ = ("bucket", "counted", "most")
    charges: ClassVar[bool] = True
    """Whether a lease owes or holds anything here; else it need not keep the bucket."""
    bucket: Bucket
    counted: bool
    """Whether the bytes of this bucket are counted with a lease that keeps it; one of all that do is enough."""
    most: float

    def __init__(self, bucket: Bucket) -> None:
        self.adopt(bucket, 0.0)

    def ask(self, bucket: Bucket, cost: float, now_ms: float) -> float | Refusal:
        """The price of `cost` where the bucket can pay it now, else why not. Charges nothing."""
        mine = self.bucket
        if bucket is not mine and (bucket.limit != mine.limit or bucket.burst != mine.burst or bucket.factor != mine.factor):
            self.adopt(bucket, now_ms)
        if cost > self.most:
            return Refusal(bucket, cost, None, over_capacity=True)
        if bucket.factor <= 0:
            return Refusal(bucket, self.used(now_ms) + cost, None, shed=True)
        return self._ask(cost, now_ms)

    def adopt(self, bucket: Bucket, now_ms: float) -> None:  # noqa: ARG002
        """Read the state under another limit or factor from now on."""
        self.bucket = bucket
        self.counted = False
        self.most = gcra.most(bucket.capacity)

    def take(self, lease: Lease, price: float, now_ms: float) -> None:  # noqa: B027
        """Charge the price that `ask` gave."""

    def free(self, lease: Lease, price: float, ended_ms: float, *, ran: bool) -> None:  # noqa: B027
        """A live lease ends: return what it holds. `ran`: whether its call was made, as far as anybody knows."""

    def renew(self, lease: Lease, price: float, expires_ms: float) -> None:  # noqa: B027
        """A live lease is about to get this end instead of its own."""

    def give_back(self, lease: Lease, price: float, now_ms: float) -> None:  # noqa: B027
        """Undo what stays charged after the end, as far as time has not undone it."""

    def correct(self, lease: Lease, bucket: Bucket, price: float, tokens: float, now_ms: float) -> float:  # noqa: ARG002
        """The price now that `tokens` were used under `bucket`; unchanged where tokens are not its matter."""
        return price

    def used(self, now_ms: float) -> float:  # noqa: ARG002
        """What is used or held now, in the bucket's units."""
        return 0.0

    def level(self, now_ms: float) -> Level:  # noqa: ARG002
        """Whole units that could be spent now, and the time until all could be."""
        return Level(self.bucket, self.bucket.limit, 0.0)

    def idle(self, now_ms: float) -> bool:  # noqa: ARG002
        """True where forgetting this meter changes no answer."""
        return True

    @abstractmethod
    def _ask(self, cost: float, now_ms: float) -> float | Refusal: ...


class SizeMeter(Meter):
    """request_tokens: how large one request may be. Nothing is counted, so nothing is priced."""

    __slots__ = ()
    charges = False

    def _ask(self, cost: float, now_ms: float) -> float | Refusal:  # noqa: ARG002
        return 0.0


class RateMeter(Meter):
    """qps: requests in a GCRA bucket."""

    __slots__ = ("ledger", "rate", "tat_ms")
    period_ms: ClassVar[float] = 1000.0

    def __init__(self, bucket: Bucket) -> None:
        self.tat_ms = 0.0
        self.ledger = Ledger()
        super().__init__(bucket)

    def adopt(self, bucket: Bucket, now_ms: float) -> None:
        super().adopt(bucket, now_ms)
        self.rate = gcra.Rate.of(bucket.limit, bucket.burst, self.period_ms)
        if bucket.kind not in SHARED_KINDS:
            self.tat_ms = gcra.clamp(self.tat_ms, now_ms, self.rate.window_ms)

    def _ask(self, cost: float, now_ms: float) -> float | Refusal:
        rate = self.rate
        price_ms = gcra.price(cost, self.bucket.factor, rate.capacity) * rate.interval_ms
        used_ms = gcra.used_ms(self.tat_ms, now_ms)
        if gcra.fits(used_ms, price_ms, rate.window_ms):
            return price_ms
        observed = round((used_ms + price_ms) / rate.interval_ms, 3)
        return Refusal(self.bucket, observed, float(gcra.wait_ms(used_ms, price_ms, rate.window_ms)))

    def take(self, lease: Lease, price: float, now_ms: float) -> None:  # noqa: ARG002
        self.tat_ms = gcra.take(self.tat_ms, now_ms, price, self.rate.window_ms)
        self.ledger.admit(price, now_ms, self.rate.window_ms)

    def give_back(self, lease: Lease, price: float, now_ms: float) -> None:
        self.tat_ms -= self.ledger.refund(price, price, lease.started_ms, self.tat_ms, now_ms)

    def used(self, now_ms: float) -> float:
        return gcra.used_ms(self.tat_ms, now_ms) / self.rate.interval_ms

    def level(self, now_ms: float) -> Level:
        used_ms = gcra.used_ms(self.tat_ms, now_ms)
        return Level(self.bucket, gcra.remaining(used_ms, self.rate), gcra.reset_ms(used_ms))

    def idle(self, now_ms: float) -> bool:
        return self.tat_ms <= now_ms


class TokenRateMeter(RateMeter):
    """tpm: weighted tokens in a GCRA bucket that holds the minute's budget, corrected when the real figure is known."""

    __slots__ = ()
    period_ms = 60_000.0

    def correct(self, lease: Lease, bucket: Bucket, price: float, tokens: float, now_ms: float) -> float:
        """Charge or refund the difference; the rate is the one under which the lease was priced. Returns what stays charged."""
        rate = self.rate if bucket is self.bucket else gcra.Rate.of(bucket.limit, bucket.burst, self.period_ms)
        wanted_ms = gcra.price(tokens, bucket.factor, rate.capacity) * rate.interval_ms
        if wanted_ms <= price:
            refund_ms = self.ledger.refund(price - wanted_ms, price, lease.started_ms, self.tat_ms, now_ms)
            self.tat_ms -= refund_ms
            return price - refund_ms
        before_ms = max(self.tat_ms, now_ms)
        self.tat_ms = gcra.take(self.tat_ms, now_ms, wanted_ms - price, self.rate.window_ms)
        more_ms = self.tat_ms - before_ms
        self.ledger.charge(lease.started_ms, more_ms)
        return price + more_ms


class HoldMeter(Meter):
    """tokens_in_flight: whole tokens held by live leases."""

    __slots__ = ("ceiling", "holds")

    def __init__(self, bucket: Bucket) -> None:
        super().__init__(bucket)
        self.holds = Holds()

    def adopt(self, bucket: Bucket, now_ms: float) -> None:
        super().adopt(bucket, now_ms)
        self.ceiling = int(bucket.bound)

    def take(self, lease: Lease, price: float, now_ms: float) -> None:
        self.holds.take(int(price), lease.expires_ms, now_ms)

    def free(self, lease: Lease, price: float, ended_ms: float, *, ran: bool) -> None:
        self.holds.free(int(price), lease.expires_ms, ended_ms, ended_ms - lease.started_ms if ran else None)

    def renew(self, lease: Lease, price: float, expires_ms: float) -> None:
        self.holds.renew(int(price), lease.expires_ms, expires_ms)

    def used(self, now_ms: float) -> float:  # noqa: ARG002
        return float(self.holds.total)

    def level(self, now_ms: float) -> Level:  # noqa: ARG002
        return Level(self.bucket, float(max(0, self.ceiling - self.holds.total)), 0.0)

    def idle(self, now_ms: float) -> bool:  # noqa: ARG002
        return not self.holds.total

    def _ask(self, cost: float, now_ms: float) -> float | Refusal:
        held = self.holds.total
        if cost > self.bucket.limit:  # no end makes room for it, but another limit may
            return Refusal(self.bucket, held + cost, None)
        price = self._price(cost)
        lacking = held + price - self.ceiling
        return price if lacking <= 0 else Refusal(self.bucket, float(held + price), self.holds.room_in_ms(lacking, now_ms))

    def _price(self, cost: float) -> int:
        return ceil(gcra.price(cost, self.bucket.factor, self.ceiling) - ROUNDING)


class SlotMeter(HoldMeter):
    """concurrency: one slot a lease; a factor moves the number of slots, never below one."""

    __slots__ = ()

    def _price(self, cost: float) -> int:  # noqa: ARG002
        return 1


_METERS: dict[str, type[Meter]] = {
    "qps": RateMeter,
    "tpm": TokenRateMeter,
    "concurrency": SlotMeter,
    "tokens_in_flight": HoldMeter,
    "request_tokens": SizeMeter,
}


class Meters:
    """The meters in use, by bucket. Idle ones are dropped little by little, so a passing crowd of owners leaves nothing behind."""

    __slots__ = ("_by_key", "_made", "_round")

    def __init__(self) -> None:
        self._by_key: dict[tuple[tuple[str, ...], str], Meter] = {}
        self._round: deque[tuple[tuple[str, ...], str]] = deque()
        self._made = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, bucket: Bucket) -> Meter:
        """The bucket's meter, made full where there is none."""
        key = (bucket.key, bucket.dimension)
        meter = self._by_key.get(key)
        if meter is None:
            meter = self._by_key[key] = _METERS[bucket.dimension](bucket)
            self._round.append(key)
            self._made += 1
        return meter

    def owned_by(self, tenant: str) -> Iterator[Meter]:
        """Meters of buckets that belong to one tenant."""
        for meter in self._by_key.values():
            if meter.bucket.kind not in SHARED_KINDS and meter.bucket.key[1] == tenant:
                yield meter

    def sweep(self, now_ms: float) -> None:
        """Look at a few meters in turn, more where more were made, and drop the idle."""
        looks, self._made = 1 + LOOKS_PER_NEW * self._made, 0
        for _ in range(min(looks, len(self._round) - KEPT_IDLE)):
            key = self._round.popleft()
            if self._by_key[key].idle(now_ms):
                del self._by_key[key]
            else:
                self._round.append(key)
