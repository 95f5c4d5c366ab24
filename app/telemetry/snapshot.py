"""What engines and GPUs said, as plain values: readings by node and model, and device memory by GPU.

A reading that is absent, NaN, infinite, negative or out of range is unknown (None), never 0. Ages are milliseconds
measured on one machine and carried as durations, so two machines' clocks never meet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One model on one node, over its engine ranks: KV the largest, counts summed."""

    kv_ratio: float | None = None
    """KV cache in use, 0..1."""
    kv_floor: float | None = None
    """The least `kv_ratio` of the last 3 s; unknown until pages span them."""
    waiting: int | None = None
    running: int | None = None
    capacity_tokens: int | None = None
    """Tokens that the KV cache holds in all, where the page tells (blocks and their size)."""
    rank_tokens: int | None = None
    """The same of its largest engine rank: a request runs on one of them, so none may be larger."""
    free_tokens: int | None = None
    """Tokens that still fit the KV cache, where the page tells."""
    iteration_ms: float | None = None
    """Mean time of one decode step, smoothed."""
    ttft_ms: float | None = None
    """Mean time to the first token, smoothed."""
    still_ms: float | None = field(default=None, compare=False)
    """Since when no gauge and no counter of the page moved: a duration that grows like an age, so it makes no new content."""


@dataclass(frozen=True, slots=True)
class Node:
    """One engine: its readings by model id, how old they are, and why it is not fresh when it is not."""

    name: str
    models: tuple[str, ...] = ()
    """Ids of the models it is configured to serve, whatever its page tells."""
    gpus: tuple[str, ...] = ()
    """Ids of the GPUs it runs on, as configured."""
    max_num_seqs: int = 0
    """Most sequences in its batch, as configured: what rules scale."""
    control_url: str = ""
    """Where it takes another max_num_seqs; empty: nowhere."""
    kind: str = ""
    """Whose engine it is."""
    steps: bool = False
    """Whether its page moves with every step: only then does a busy page that stands still say that the engine hangs."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    age_ms: float | None = None
    """Age of the newest good page when the snapshot was taken; None: none yet."""
    problem: str | None = None
    """Why the newest scrape was no good: timeout, connect, status, parse, missing:<signal>."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """Device memory of one GPU, or of one MIG instance of it."""

    id: str
    """Its UUID (GPU-… or MIG-…), as engines name it in the settings."""
    total_bytes: int | None = None
    """What programs can have of it: used and free, without what the driver keeps where the source tells that apart."""
    used_bytes: int | None = None
    memory_ratio: float | None = None
    """Memory in use, 0..1."""
    memory_floor: float | None = None
    """The least `memory_ratio` of the last 3 s; unknown until readings span them."""
    source: str = ""
    """Who told: nvml, dcgm or nvidia-smi."""
    age_ms: float | None = None
    """Age of the reading when the snapshot was taken; None: never read."""
    problem: str | None = None
    """Why it tells nothing: not_supported, lost, driver_mismatch, …"""


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
    gpus: tuple[Gpu, ...] = ()
    loads: Loads = field(default_factory=Loads)
