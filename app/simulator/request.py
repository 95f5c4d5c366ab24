"""One request inside the engine: its sequence, the times that its page tells of, and the way its tokens leave."""

import asyncio
import math
from dataclasses import dataclass, field

from app.simulator.readings import Finished, Outcome
from app.simulator.scheduler import Sequence


@dataclass(slots=True, eq=False)
class Request:
    """Times are infinite until they come. `tokens` carries True for each token, False when the request was lost."""

    sequence: Sequence
    arrived_ms: float
    admitted_ms: float = math.inf
    first_ms: float = math.inf
    last_ms: float = math.inf
    tokens: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)

    def admit(self, now_ms: float) -> None:
        """It got a place in the batch: the first one counts, not those after a preemption."""
        self.admitted_ms = min(self.admitted_ms, now_ms)

    def emit(self, now_ms: float, outcome: Outcome) -> None:
        """One more token came out: count its latency."""
        if self.sequence.generated == 1:
            self.first_ms = now_ms
            outcome.first_token_s.append((now_ms - self.arrived_ms) / 1000)
            outcome.prompt_tokens += self.sequence.prompt_tokens
        else:
            outcome.next_token_s.append((now_ms - self.last_ms) / 1000)
        self.last_ms = now_ms
        self.tokens.put_nowait(True)

    def lose(self) -> None:
        """Its tokens are lost, and whoever waits for them learns it."""
        self.tokens.put_nowait(False)

    def finished(self) -> Finished:
        """How its time was spent, once the last token came out."""
        return Finished(
            self.sequence.generated,
            queued_s=(self.admitted_ms - self.arrived_ms) / 1000,
            first_token_s=(self.first_ms - self.arrived_ms) / 1000,
            whole_s=(self.last_ms - self.arrived_ms) / 1000,
        )
