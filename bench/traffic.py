"""Traffic through a gateway: what is to be sent, and what became of each request. A process of its own makes it (gateway.py)."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from bench.arrivals import Arrival
from bench.generator import percentile

GRACE_S = 20.0
"""A gateway that needs this much longer than its traffic lasts is stuck."""

End = Literal["completed", "aborted", "failed", "refused"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of one tenant for one model, and whom to ask for them."""

    start: float
    """Where `time.perf_counter()` stands when the first second begins: the machine's clock, the same in all processes."""
    sluice_port: int
    headers: Mapping[str, str]
    tenant: str
    model: str
    engines: Mapping[str, int]
    """Ports of the engines by the names of their nodes."""
    patience_s: float
    """A client without a first token leaves after so long."""
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """What became of one request. Moments count in seconds from the start, as those of arrivals do."""

    arrival: Arrival
    sent_s: float
    """When the gateway asked for a decision: later than it was due by as much as the gateway was late."""
    decided_s: float
    ended_s: float
    end: End
    """`aborted`: the client left; `failed`: the engine, or there was no decision; `refused`: by the decision."""
    reason: str = ""
    """Code and rule of the first reason of a refusal, or what failed."""
    tokens_s: tuple[float, ...] = ()
    """When each token came."""

    @property
    def ttft_s(self) -> float | None:
        """From the moment it was due until the first token came; None: none came."""
        return self.tokens_s[0] - self.arrival.due_s if self.tokens_s else None

    @property
    def admitted(self) -> bool:
        """Whether the decision let it in."""
        return self.end != "refused"


@dataclass(frozen=True, slots=True)
class Report:
    """All calls, in the order in which they were due, and what the gateway took for them."""

    calls: tuple[Call, ...]
    cpu_s: float
    seconds: float

    @property
    def note(self) -> str:
        """Whether the gateway could have been what was measured."""
        late_ms = percentile([(call.sent_s - call.arrival.due_s) * 1000 for call in self.calls], 0.99)
        return f"gateway {self.cpu_s / self.seconds:.2f} cores, p99 {late_ms:.0f} ms late"


class Running:
    """Traffic under way; it ends with the block."""

    def __init__(self, traffic: Traffic, folder: Path) -> None:
        self._lasts_s = traffic.arrivals[-1].due_s + traffic.patience_s
        wanted, self._report = folder / "traffic.json", folder / "report.json"
        wanted.write_text(json.dumps(asdict(traffic)), "utf-8")
        self._process = subprocess.Popen([sys.executable, "-m", "bench.gateway", str(wanted), str(self._report)])

    def report(self) -> Report:
        """Wait until all is over. Raises RuntimeError where the gateway failed."""
        if self._process.wait(self._lasts_s + GRACE_S) != 0:
            raise RuntimeError("the gateway failed; see the lines above")
        return _report(json.loads(self._report.read_text("utf-8")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()


def _report(document: dict[str, Any]) -> Report:
    calls = [{**call, "arrival": Arrival(**call["arrival"]), "tokens_s": tuple(call["tokens_s"])} for call in document["calls"]]
    return Report(tuple(Call(**call) for call in calls), document["cpu_s"], document["seconds"])
