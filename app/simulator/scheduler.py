"""Continuous batching over a fixed number of KV blocks: a pure step function, without time, I/O or randomness.

The order is the engine's own: running sequences first, each one token a step; when no block is free the youngest
running sequence gives all of its blocks back and is computed again later; then waiting sequences are admitted in order.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class Sequence:
    """One request's tokens: how many it has, and for how many the cache holds keys and values."""

    id: str
    prompt_tokens: int
    max_tokens: int
    generated: int = 0
    computed: int = 0
    blocks: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and generated tokens."""
        return self.prompt_tokens + self.generated

    @property
    def finished(self) -> bool:
        """True once the last wanted token exists."""
        return self.generated >= self.max_tokens


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did, in ids. `admitted`: also those that come back; `emitted`: got one token, in batch order; `finished` is a part of them."""

    admitted: tuple[str, ...] = ()
    emitted: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    preempted: tuple[str, ...] = ()
    computed_tokens: int = 0
    """Tokens run through the model in this step, prompts and decodes together."""
    used_blocks: int = 0
    """Blocks held while the model ran, those of sequences that finished with it included."""
    lost: tuple[str, ...] = ()
    """Those whose work was lost with the engine; a scheduler alone loses none."""


class Scheduler:
    """Which sequences run, which wait, and who holds which blocks."""

    def __init__(self, blocks: int, block_size: int, max_num_seqs: int, prefill_steps: int) -> None:
        self.total_blocks = blocks
        self.block_size = block_size
        self.free_blocks = blocks
        self.max_num_seqs = max_num_seqs
        """Most sequences in the batch; may be changed at any time, and what runs beyond it runs on."""
        self._prefill_steps = prefill_steps
        self._running: list[Sequence] = []
        self._waiting: deque[Sequence] = deque()

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences that hold no block yet, or no longer."""
        return len(self._waiting)

    @property
    def used_blocks(self) -> int:
        """Blocks that sequences hold."""
        return self.total_blocks - self.free_blocks

    @property
    def longest_tokens(self) -> int:
        """Tokens of the batch once all of its sequences are at their longest."""
        return sum(s.prompt_tokens + s.max_tokens for s in self._running)

    @property
    def kv_ratio(self) -> float:
        """Blocks in use, 0..1."""
        return 1 - self.free_blocks / self.total_blocks

    @property
    def capacity_tokens(self) -> int:
        """The longest sequence that fits the cache when it is alone."""
        return self.total_blocks * self.block_size

    def check(self, prompt_tokens: int, max_tokens: int) -> None:
        """Raises ValueError where such a sequence could never fit: it would block the queue for ever."""
        if prompt_tokens + max_tokens > self.capacity_tokens:
            raise ValueError(f"max_tokens: {prompt_tokens} + {max_tokens} tokens exceed the cache of {self.capacity_tokens}")

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence. Raises ValueError as `check` does."""
        self.check(sequence.prompt_tokens, sequence.max_tokens)
        self._waiting.append(sequence)

    def abort(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Drop these sequences and free their blocks; answers those that were still known."""
        gone = set(ids)
        dropped = [s for s in (*self._running, *self._waiting) if s.id in gone]
        for sequence in dropped:
            self._release(sequence)
        self._running = [s for s in self._running if s.id not in gone]
        self._waiting = deque(s for s in self._waiting if s.id not in gone)
        return tuple(s.id for s in dropped)

    def step(self) -> Step:
        """One iteration of the model."""
        preempted: list[Sequence] = []
        computed_tokens = 0
        for sequence in tuple(self._running):
            if sequence in preempted:
                continue
            if self._make_room(sequence, preempted):
                computed_tokens += self._compute(sequence)
        self._waiting.extendleft(preempted)
        admitted = [] if preempted else self._admit()
        computed_tokens += sum(s.computed for s in admitted)
        used_blocks = self.used_blocks
        emitted = [s for s in self._running if s.computed == s.tokens]
        for sequence in emitted:
            sequence.generated += 1
        finished = [s for s in emitted if s.finished]
        for sequence in finished:
            self._running.remove(sequence)
            self._release(sequence)
        return Step(_ids(admitted), _ids(emitted), _ids(finished), _ids(preempted), computed_tokens, used_blocks)

    def _admit(self) -> list[Sequence]:
        admitted: list[Sequence] = []
        while self._waiting and len(self._running) < self.max_num_seqs and self._missing(self._waiting[0]) <= self.free_blocks:
            sequence = self._waiting.popleft()
            self._running.append(sequence)
            self._compute(sequence)
            admitted.append(sequence)
        return admitted

    def _make_room(self, sequence: Sequence, preempted: list[Sequence]) -> bool:
        """Take blocks from the youngest until `sequence` can go on; False where it was itself the youngest."""
        while self._missing(sequence) > self.free_blocks:
            victim = self._running.pop()
            self._release(victim)
            preempted.append(victim)
            if victim is sequence:
                return False
        return True

    def _chunk(self, sequence: Sequence) -> int:
        """Tokens of this step: a share of those it has while it catches up, one once it decodes."""
        return min(-(-sequence.tokens // self._prefill_steps), sequence.tokens - sequence.computed)

    def _missing(self, sequence: Sequence) -> int:
        return -(-(sequence.computed + self._chunk(sequence)) // self.block_size) - sequence.blocks

    def _compute(self, sequence: Sequence) -> int:
        missing, chunk = self._missing(sequence), self._chunk(sequence)
        self.free_blocks -= missing
        sequence.blocks += missing
        sequence.computed += chunk
        return chunk

    def _release(self, sequence: Sequence) -> None:
        self.free_blocks += sequence.blocks
        sequence.blocks = 0
        sequence.computed = 0


def _ids(sequences: list[Sequence]) -> tuple[str, ...]:
    return tuple(sequence.id for sequence in sequences)
