"""What a page's counters and histograms stand at: the sum of all steps since the engine started."""

from app.simulator.exposition import Histogram
from app.simulator.readings import Finished, Outcome

LATENCY_BUCKETS_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)


class Totals:
    """Sums over steps, and over finished requests: some engines count a request only as it ends."""

    def __init__(self) -> None:
        self.steps = 0
        self.sequences = 0
        """Batch sizes, summed over the steps."""
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.first_token_s = Histogram(LATENCY_BUCKETS_S)
        self.inter_token_s = Histogram(LATENCY_BUCKETS_S)
        self.finished = FinishedTotals()

    def add(self, outcome: Outcome) -> None:
        """Count one step."""
        self.steps += 1
        self.sequences += outcome.running
        self.prompt_tokens += outcome.prompt_tokens
        self.generation_tokens += len(outcome.first_token_s) + len(outcome.next_token_s)
        for wait_s in outcome.first_token_s:
            self.first_token_s.observe(wait_s)
        for gap_s in outcome.next_token_s:
            self.inter_token_s.observe(gap_s)
        for finished in outcome.finished:
            self.finished.add(finished)


class FinishedTotals:
    """Sums over the requests that got all of their tokens."""

    def __init__(self) -> None:
        self.generated = 0
        self.prompt_s = 0.0
        self.decode_s = 0.0
        self.compute_s = Histogram(LATENCY_BUCKETS_S)
        self.queued_s = Histogram(LATENCY_BUCKETS_S)
        self.first_token_s = Histogram(LATENCY_BUCKETS_S)
        self.whole_s = Histogram(LATENCY_BUCKETS_S)
        self.compute_per_token_s = Histogram(LATENCY_BUCKETS_S)
        self.decode_per_token_s = Histogram(LATENCY_BUCKETS_S)
        """Between the tokens of a request, hence of those with more than one."""

    @property
    def count(self) -> int:
        """How many requests."""
        return self.whole_s.count

    def add(self, request: Finished) -> None:
        """Count one request."""
        self.generated += request.generated
        self.prompt_s += request.prompt_s
        self.decode_s += request.decode_s
        self.compute_s.observe(request.compute_s)
        self.queued_s.observe(request.queued_s)
        self.first_token_s.observe(request.first_token_s)
        self.whole_s.observe(request.whole_s)
        self.compute_per_token_s.observe(request.compute_s / request.generated)
        if request.generated > 1:
            self.decode_per_token_s.observe(request.decode_s / (request.generated - 1))
