"""What is known of each model and of each node under it at one moment, as rules and decisions read it (build_view.py makes it)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.catalog.models import ModelSpec, Signal
from app.telemetry.snapshot import Gpu, Loads, Reading

SIGNAL_FIELDS: dict[Signal, str] = {"kv": "kv_ratio", "waiting": "waiting", "running": "running"}
"""The reading that carries each signal a spec can declare."""

NodeModel = tuple[str, str]
"""Name of a node and id of a model on it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What this replica knows of one model on one node beside what its page says (app/nodes makes it)."""

    why: str = ""
    """Why it is not live although its page is fresh: frozen or failing; empty where nothing speaks against it."""
    avoid: bool = False
    """Whether a rule of rego/nodes keeps new requests away."""
    max_in_flight: int | None = None
    """Requests that may be in flight there (A3); None: nobody says."""
    admission: float | None = None
    """Share of new requests that the controller lets in, 0..1; None: nobody says."""
    max_num_seqs: int | None = None
    """Sequences that rules leave its batch (B11); None: no rule has spoken."""
    requests: int = field(default=0, compare=False)
    tokens: int = field(default=0, compare=False)
    """What leases of ours held there when its page was judged."""


NOTHING_KNOWN = Standing()


@dataclass(frozen=True, slots=True)
class Own:
    """What this replica adds to a snapshot."""

    standings: Mapping[NodeModel, Standing] = field(default_factory=dict)
    held_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens of our own leases in flight, by model."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Device memory of the GPUs under a node: the fullest of them, and what is free on all together. None is unknown."""

    ratio: float | None = None
    floor: float | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """One model on one node it is configured for. `why` is empty where it is live. Equal content is equal, whatever its age."""

    node: str
    model: str
    reading: Reading
    age_ms: float | None = field(compare=False)
    why: str = ""
    """no_page, stale, timeout, connect, status, parse, missing:<signal>, frozen, failing."""
    kind: str = ""
    max_num_seqs: int = 0
    """As configured."""
    control_url: str = ""
    memory: Memory = field(default_factory=Memory)
    standing: Standing = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Choice:
    """One node that a request of a model may be sent to, and what tells how full it is by now."""

    node: str
    kv_ratio: float
    """As its page says; infinite where it is unknown."""
    waiting: float
    per_request: float
    """Share of the node that one request takes; for a token the same. Only one of them is above 0: by tokens where the cache's size is known."""
    per_token: float
    requests: int
    tokens: int
    """What leases of ours held there when the page was judged: what came since is not on the page yet."""

    def load(self, requests: int, tokens: int) -> tuple[float, float, str]:
        """How full it is with so much of ours in flight there now; the least is the best node."""
        more, more_tokens = max(0, requests - self.requests), max(0, tokens - self.tokens)
        return self.kv_ratio + more * self.per_request + more_tokens * self.per_token, self.waiting + more, self.node


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model over its live nodes."""

    readings: Mapping[str, Any]
    """The question's section: live, known, frozen, and what every live node tells (rego/schemas/readings.json).
    The same object as before while the content is the same."""
    nodes: tuple[str, ...] = ()
    """Live nodes that no rule avoids, lowest KV first, then fewest waiting, then by name."""
    age_ms: float | None = field(default=None, compare=False)
    """Age of the freshest live page; None: no live node."""
    choices: tuple[Choice, ...] = field(default=(), compare=False)
    """The same nodes in the same order."""

    @property
    def live(self) -> bool:
        """Whether any node is live."""
        return bool(self.readings.get("live"))


@dataclass(frozen=True, slots=True)
class View:
    """All models at one moment. `generation` grows by one with each change of content; ages alone do not change it."""

    generation: int = 0
    models: Mapping[str, ModelView] = field(default_factory=dict)
    nodes: tuple[NodeState, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    taken_ms: float = 0.0
    """The reader's monotonic clock when the ages were true."""
    loads: Loads = field(default_factory=Loads)
    """What became of changes of the engines' configuration."""


def missing_signal(reading: Reading | None, spec: ModelSpec) -> Signal | None:
    """The first declared signal that the reading does not tell."""
    return next((signal for signal in spec.signals if reading is None or getattr(reading, SIGNAL_FIELDS[signal]) is None), None)
