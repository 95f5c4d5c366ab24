"""Counters in this process: every method is one step that nothing can interrupt, because none of them awaits.

The methods are coroutines all the same, so that counters shared by several replicas can stand in their place.

When down: counters live and die with serve. After a restart buckets are full, slots free, and leases given before are
unknown: their settle answers 404.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from prometheus_client import Counter

from app.clock import Clock
from app.limiter.charge import Charge, Level, LiveLease, Refusal, Settlement, Spent, Usage
from app.limiter.errors import Draining, LeaseEnded, RequestInFlight
from app.limiter.in_flight import Held, InFlight, Place, Report
from app.limiter.last_minute import LastMinute
from app.limiter.lease import ENDS, Lease, Noted, State
from app.limiter.meters import Meter, Meters
from app.limiter.records import LeaseRecords
from app.observability.metrics import Metrics


class MemoryLimiter:
    """Spends charges over buckets, all or none, and keeps a lease for each."""

    def __init__(self, clock: Clock, *, keep_ms: float, records_bytes: int, metrics: Metrics) -> None:
        self._clock = clock
        self._records = LeaseRecords(keep_ms, records_bytes, metrics.lease_records_evicted)
        self._meters = Meters()
        self._in_flight = InFlight()
        self._spent = LastMinute()
        self._draining = False
        self._ends: dict[State, Counter] = {state: metrics.lease_ends.labels(state) for state in ENDS}
        self._flags = metrics.settle_flags
        metrics.leases.set_function(lambda: len(self._records.live))
        metrics.lease_records_bytes.set_function(lambda: self._records.bytes)

    async def recall(self, request_key: tuple[str, ...], digest: bytes) -> bytes | None:
        """The answer recorded for a request id, or None. Raises RequestIdReused or RequestInFlight, each a Conflict."""
        self._step()
        return self._records.recall(request_key, digest)

    async def spend(self, charge: Charge) -> Spent:
        """Charge every bucket and give a lease, or charge none and name all buckets that did not pass.

        Raises LeaseRecordsFull, Draining, and a Conflict where the request id has been admitted since it was recalled.
        """
        now_ms = self._step()
        if self._draining:
            raise Draining("this process is shutting down and admits nothing new")
        if charge.request_key is not None and self._records.recall(charge.request_key, charge.request_digest) is not None:
            raise RequestInFlight(f"request_id {charge.request_key[-1]!r} was admitted a moment ago", field="request_id")
        self._meters.sweep(now_ms)
        lease = Lease.of(charge, now_ms)
        meters, prices, refusals = self._ask(charge, lease, now_ms)
        if refusals:
            return Spent(admitted=False, refusals=tuple(refusals))
        charged = [meter for meter in meters if meter.charges]
        brought = [meter.bucket for meter in charged if not meter.counted]
        lease.pay(tuple([meter.bucket for meter in charged]), tuple(prices), brought)
        self._records.make_room(lease)
        for meter, price in zip(charged, prices, strict=True):
            meter.counted = True
            meter.take(lease, price, now_ms)
        self._records.add(lease)
        self._in_flight.begin(lease)
        self._spent.add((lease.tenant, lease.model), lease.weighted_tokens, now_ms)
        return Spent(True, _tightest([meter.level(now_ms) for meter in meters]), (), lease.tokens_reserved, charge.ttl_ms)

    async def record(self, lease_id: str, answer: bytes) -> None:
        """Keep the answer that a replay of the lease's request gets. Raises NotFound."""
        self._step()
        self._records.record(self._records.find(lease_id, None), answer)

    async def keep_note(self, lease_id: str, note: bytes) -> None:
        """Keep a note with a lease as long as it is known: every settlement of it has the note. Raises NotFound."""
        self._step()
        self._records.note(self._records.find(lease_id, None), note)

    async def take_note(self, lease_id: str) -> bytes | None:
        """The note of a lease, which is gone then: of several that ask one gets it. Raises NotFound."""
        self._step()
        lease = self._records.find(lease_id, None)
        note = lease.note
        self._records.note(lease, None)
        return note

    async def take_ended_notes(self) -> list[Noted]:
        """Leases that ended since this was last asked and have their note yet, each once, as they stand by now; for one reader.

        They keep it, so that it can be taken later all the same.
        """
        self._step()
        return self._records.take_ended_notes()

    async def live_notes(self) -> list[Noted]:
        """Leases in flight that have a note."""
        self._step()
        return self._records.live_notes()

    async def settle(self, lease_id: str, scope: str, usage: Usage) -> Settlement:
        """Charge what was used and free the slot.

        The same report again gets the same answer. Another report, or the first one after the lease expired, corrects
        the tokens and frees nothing. Raises NotFound, LeaseEnded after a cancel.
        """
        now_ms = self._step()
        lease = self._records.find(lease_id, scope)
        if lease.settlement is not None and lease.settled_by == usage:
            return replace(lease.settlement, repeated=True, note=lease.note)
        if lease.state == "cancelled":
            raise LeaseEnded(f"lease {lease_id!r} was cancelled and refunded; there is nothing to settle", field="lease_id")
        freed = lease.state == "live"
        tokens, flags = lease.used(usage)
        refunded = lease.weighted_tokens - tokens
        prices = []
        for bucket, price in zip(lease.buckets, lease.prices, strict=True):
            meter = self._meters.of(bucket)
            if freed:
                meter.free(lease, price, now_ms, ran=True)
            prices.append(meter.correct(lease, bucket, price, tokens, now_ms))
        lease.prices, lease.weighted_tokens = tuple(prices), tokens
        self._spent.add((lease.tenant, lease.model), -refunded, now_ms)
        self._end(lease, "settled", now_ms)
        if lease.settled_by is None:
            self._in_flight.report(lease, usage.outcome, now_ms)
        for flag in flags:
            self._flags.labels(flag).inc()
        lease.settled_by = usage
        lease.settlement = Settlement(lease_id, usage.outcome, tokens, refunded, freed, repeated=False, flags=flags, note=lease.note)
        return lease.settlement

    async def renew(self, lease_id: str, scope: str, ttl_ms: float) -> float:
        """Let the lease live `ttl_ms` from now on; returns that. Raises NotFound, LeaseEnded."""
        now_ms = self._step()
        lease = self._records.find(lease_id, scope)
        if lease.state != "live":
            raise LeaseEnded(f"lease {lease_id!r} is {lease.state}; its slot has been freed", field="lease_id")
        expires_ms = now_ms + ttl_ms
        for bucket, price in zip(lease.buckets, lease.prices, strict=True):
            self._meters.of(bucket).renew(lease, price, expires_ms)
        self._records.renew(lease, expires_ms)
        return ttl_ms

    async def cancel(self, lease_id: str, scope: str) -> None:
        """Undo the whole charge, requests too, for work that never started; again changes nothing.

        A bucket gets back what it has not earned again since (ledger.py). Raises NotFound, LeaseEnded after a settle.
        """
        now_ms = self._step()
        lease = self._records.find(lease_id, scope)
        if lease.state == "settled":
            raise LeaseEnded(f"lease {lease_id!r} was settled; a newer settle corrects it", field="lease_id")
        if lease.state == "cancelled":
            return
        for bucket, price in zip(lease.buckets, lease.prices, strict=True):
            meter = self._meters.of(bucket)
            if lease.state == "live":
                meter.free(lease, price, now_ms, ran=False)
            meter.give_back(lease, price, now_ms)
        self._spent.add((lease.tenant, lease.model), -lease.weighted_tokens, now_ms)
        self._end(lease, "cancelled", now_ms)

    async def release(self, lease_id: str) -> None:
        """End a live lease by force, as an operator, of whatever scope: as if it expired now. Raises NotFound, LeaseEnded."""
        now_ms = self._step()
        lease = self._records.find(lease_id, None)
        if lease.state != "live":
            raise LeaseEnded(f"lease {lease_id!r} is {lease.state} already", field="lease_id")
        self._free(lease, "released", now_ms)

    async def leases(self, tenant: str | None = None) -> tuple[LiveLease, ...]:
        """Leases in flight, of one tenant or all, oldest first."""
        now_ms = self._step()
        return tuple(lease.view(now_ms) for lease in self._records.live.values() if tenant is None or lease.tenant == tenant)

    async def usage(self, tenant: str) -> tuple[Level, ...]:
        """Levels of the buckets that are the tenant's own; a bucket at rest may be absent, it is full."""
        now_ms = self._step()
        return tuple(meter.level(now_ms) for meter in self._meters.owned_by(tenant))

    async def expire_due(self) -> None:
        """End the leases whose time is over, as every step does first."""
        self._step()

    async def drain(self) -> None:
        """Admit nothing from now on; what is in flight can still be ended."""
        self._draining = True
        self._step()

    def in_flight(self, node: str | None, model: str) -> Held:
        """What this replica's leases hold of a model on a node (None: on no node)."""
        self._step()
        return self._in_flight.of((node, model))

    def take_reports(self) -> list[Report]:
        """How calls on nodes ended since this was last asked, in order; for one reader."""
        return self._in_flight.take_reports()

    def on_node(self, node: str) -> Held:
        """What this replica's leases hold of all models on a node."""
        self._step()
        return self._in_flight.on(node)

    def by_model(self) -> Mapping[str, Held]:
        """What this replica's leases hold, by model, wherever they run; absent where nothing."""
        self._step()
        return self._in_flight.by_model()

    def busy(self) -> Iterable[Place]:
        """Nodes and models with leases in flight."""
        self._step()
        return self._in_flight.busy()

    def spent_last_minute(self) -> Mapping[tuple[str, str], float]:
        """Weighted tokens by (tenant, model), as reserved and then as settled."""
        return self._spent.sums(self._clock.monotonic_ms())

    def _step(self) -> float:
        """Begin a step: the one instant that rules it, with all that is over by then ended or forgotten."""
        now_ms = self._clock.monotonic_ms()
        while (lease := self._records.due(now_ms)) is not None:
            self._free(lease, "expired", lease.expires_ms)
        self._records.forget_old(now_ms)
        return now_ms

    def _ask(self, charge: Charge, lease: Lease, now_ms: float) -> tuple[list[Meter], list[float], list[Refusal]]:
        """The meter of every bucket that passes, the prices of those that charge, and all refusals; nothing is charged."""
        tokens = lease.tokens_reserved
        costs = {
            "qps": charge.requests_cost,
            "tpm": lease.weighted_tokens,
            "concurrency": 1,
            "tokens_in_flight": tokens,
            "request_tokens": tokens,
        }
        meters: list[Meter] = []
        prices: list[float] = []
        refusals: list[Refusal] = []
        for bucket in charge.buckets:
            meter = self._meters.of(bucket)
            answer = meter.ask(bucket, costs[bucket.dimension], now_ms)
            if isinstance(answer, Refusal):
                refusals.append(answer)
                continue
            meters.append(meter)
            if meter.charges:
                prices.append(answer)
        return meters, prices, refusals

    def _free(self, lease: Lease, state: State, ended_ms: float) -> None:
        """End a live lease: what it held is free, what it was charged stays charged."""
        for bucket, price in zip(lease.buckets, lease.prices, strict=True):
            self._meters.of(bucket).free(lease, price, ended_ms, ran=True)
        self._end(lease, state, ended_ms)

    def _end(self, lease: Lease, state: State, ended_ms: float) -> None:
        """Note how a lease ended; of one that had ended before, how it ended after all."""
        if lease.state == "live":
            self._ends[state].inc()
            self._in_flight.end(lease)
        self._records.end(lease, state, ended_ms)


def _tightest(levels: list[Level]) -> tuple[Level, ...]:
    """The level with the least remaining per dimension."""
    tightest: dict[str, Level] = {}
    for level in levels:
        dimension = level.bucket.dimension
        if dimension not in tightest or level.remaining < tightest[dimension].remaining:
            tightest[dimension] = level
    return tuple(tightest.values())
