"""What an engine tells its page: the gauges of the moment, and what each step did."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gauges:
    """The readings of the moment. `kv_ratio` and `waiting` may be NaN where a fault says so."""

    kv_ratio: float
    waiting: float
    running: float
    longest_tokens: float = 0
    """Tokens that the batch holds once all of its sequences are at their longest."""


@dataclass(frozen=True, slots=True)
class Finished:
    """One request that got all of its tokens, and how its time was spent."""

    generated: int
    queued_s: float
    first_token_s: float
    """From its arrival."""
    whole_s: float

    @property
    def prompt_s(self) -> float:
        """From its admission to its first token."""
        return self.first_token_s - self.queued_s

    @property
    def compute_s(self) -> float:
        """From its admission to its last token."""
        return self.whole_s - self.queued_s

    @property
    def decode_s(self) -> float:
        """From its first token to its last."""
        return self.whole_s - self.first_token_s


@dataclass(slots=True)
class Outcome:
    """What one step did: tokens run through the model, the batch they ran in, latencies of the tokens that came out."""

    computed_tokens: int = 0
    running: int = 0
    preempted: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    """Of the requests that got their first token."""
    first_token_s: list[float] = field(default_factory=list)
    next_token_s: list[float] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
