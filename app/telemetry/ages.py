"""Snapshots grow old: ages and how long until the next of them is too high."""

import math
from dataclasses import replace

from app.telemetry.snapshot import Snapshot


def next_expiry_ms(snapshot: Snapshot, stale_ms: float) -> float:
    """How long until the next node or GPU that is still fresh becomes stale; infinite where none is."""
    ages = [*(node.age_ms for node in snapshot.nodes), *(gpu.age_ms for gpu in snapshot.gpus)]
    return min((stale_ms - age for age in ages if age is not None and age < stale_ms), default=math.inf)


def aged(snapshot: Snapshot, elapsed_ms: float) -> Snapshot:
    """The snapshot `elapsed_ms` later; itself where no time passed."""
    if elapsed_ms == 0:
        return snapshot

    def later(duration_ms: float | None) -> float | None:
        return None if duration_ms is None else duration_ms + elapsed_ms

    nodes = tuple(
        replace(
            node,
            age_ms=later(node.age_ms),
            readings={model: replace(reading, still_ms=later(reading.still_ms)) for model, reading in node.readings.items()},
        )
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes, gpus=tuple(replace(gpu, age_ms=later(gpu.age_ms)) for gpu in snapshot.gpus))
