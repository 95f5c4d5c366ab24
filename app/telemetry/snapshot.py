"""What the engines said, as plain values: readings by node and model, and their aggregates over a model's nodes.

A reading that is absent, NaN, infinite, negative or out of range is unknown (None), never 0. Ages are milliseconds
measured on one machine and carried as durations, so two machines' clocks never meet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reading:
    """One model on one node, over its engine ranks: KV the largest, counts summed."""

    kv_ratio: float | None = None
    """KV cache in use, 0..1."""
    waiting: int | None = None
    running: int | None = None
    free_tokens: int | None = None
    """Tokens that still fit the KV cache, where the page tells the number of blocks and their size."""
    iteration_ms: float | None = None
    """Mean time of one decode step since the previous page."""


@dataclass(frozen=True, slots=True)
class Node:
    """One engine: its readings by model id, how old they are, and why it is not fresh when it is not."""

    name: str
    models: tuple[str, ...] = ()
    """Ids of the models it is configured to serve, whatever its page tells."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    age_ms: float | None = None
    """Age of the newest good page when the snapshot was taken; None: none yet."""
    problem: str | None = None
    """Why the newest scrape was no good: timeout, connect, status, parse, missing:<signal>."""


@dataclass(frozen=True, slots=True)
class Loads:
    """What became of changes of the configuration files since the telemetry process started."""

    ok: int = 0
    refused: int = 0
    problem: str | None = None
    """Why the newest files are not in force; None: they are."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All nodes at one moment. `generation` grows by one with each change of content."""

    generation: int
    nodes: tuple[Node, ...] = ()
    loads: Loads = field(default_factory=Loads)
