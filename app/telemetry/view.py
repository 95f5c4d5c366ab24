"""What is known of each model and of each node under it at one moment, as rules and decisions read it (build_view.py makes it)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.catalog.models import ModelSpec, Signal
from app.telemetry.snapshot import Gpu, Loads, Reading

SIGNAL_FIELDS: dict[Signal, str] = {"kv": "kv_ratio", "waiting": "waiting", "running": "running"}
"""The reading that carries each signal a spec can declare."""

DEAD = ("frozen", "failing")
"""Why a node whose page is fresh is not live."""
SHUT_OUT = (*DEAD, "avoided")
"""Why it gets no requests but a probe."""

NodeModel = tuple[str, str]
"""Name of a node and id of a model on it."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What leases of ours hold of a model, on one node or on all."""

    requests: int = 0
    tokens: int = 0
    cached_tokens: float = 0.0
    """How many of them are counted as in the node's cache already."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What this replica knows of one model on one node beside what its page says (app/nodes makes it)."""

    why: str = ""
    """Why it is not live although its page is fresh: frozen or failing; empty where nothing speaks against it."""
    avoided_by: tuple[Mapping[str, str], ...] = ()
    """Rules of rego/nodes that keep new requests away, each with its code and message."""
    max_in_flight: int | None = None
    """Requests that may be in flight there (A3); None: nobody says."""
    admission: float | None = None
    """Share of new requests that the controller lets in, 0..1; None: nobody says."""
    max_num_seqs: int | None = None
    """Sequences that rules leave its batch (B11); None: no rule has spoken."""
    holding: Holding = field(default=Holding(), compare=False)
    """Of this model, when the page was judged."""
    shown_requests: int = field(default=0, compare=False)
    shown_tokens: int = field(default=0, compare=False)
    """What leases of ours held there, of all models, when the page last moved: it shows no more of ours than that."""

    @property
    def avoid(self) -> bool:
        """Whether any rule keeps new requests away."""
        return bool(self.avoided_by)


NOTHING_KNOWN = Standing()


@dataclass(frozen=True, slots=True)
class Own:
    """What this replica adds to a snapshot."""

    standings: Mapping[NodeModel, Standing] = field(default_factory=dict)
    held: Mapping[str, Holding] = field(default_factory=dict)
    """What our leases hold by model, on whatever node."""


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

    @property
    def shut_out(self) -> str:
        """Why it gets no requests but a probe although its page is fresh: frozen, failing or avoided; empty: it is not so."""
        if self.why in DEAD:
            return self.why
        return "avoided" if self.standing.avoid and not self.why else ""


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
    shown_requests: int
    shown_tokens: int
    """What leases of ours held there when the page last moved: what came since is not on the page."""
    free_tokens: float
    """Room in its cache as the page says; infinite where it is unknown."""
    most_tokens: float
    """What its largest engine rank can hold at all; infinite where it is unknown."""

    @property
    def page(self) -> tuple[float, float, str]:
        """How full it is by its page alone."""
        return self.kv_ratio, self.waiting, self.node

    def load(self, requests: int, tokens: int, asked_tokens: int) -> tuple[int, float, float, str]:
        """How ill a request of so many tokens is off there, with so much of ours in flight there now; the least is the best.

        First whether it fits the room (0), the empty cache (1) or neither (2), then how full the node is.
        """
        more, more_tokens = max(0, requests - self.shown_requests), max(0, tokens - self.shown_tokens)
        misfit = 2 if asked_tokens > self.most_tokens else int(asked_tokens > self.free_tokens - more_tokens)
        return misfit, self.kv_ratio + more * self.per_request + more_tokens * self.per_token, self.waiting + more, self.node


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
    pool: str = ""
    """The first of all models that the same nodes serve: they share caches and batches, so they share what limits those."""

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
