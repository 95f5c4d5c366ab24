"""What serve writes the log with, built once.

When down: what is owed to the log at once is refused (intake.py), what may wait waits (pending.py, summaries.py), and the log
is told of both afterwards (gaps.py).
"""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine
from uuid_utils import uuid7

from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.intake.pending import Pending
from app.audit.intake.summaries import LOOK_EVERY_S, Summaries
from app.background import Background
from app.clock import Clock
from app.observability.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Writers:
    """The ways into the log."""

    gaps: Gaps
    intake: Intake
    pending: Pending
    summaries: Summaries

    @classmethod
    def of(cls, engine: AsyncEngine, clock: Clock, metrics: Metrics, *, marker: Path, timeout_ms: int) -> "Writers":
        """Writers over the intake role's `engine`; `marker`: the file that tells of a kill."""
        gaps = Gaps(clock)
        intake = Intake(engine, metrics, gaps, timeout_ms=timeout_ms)
        pending = Pending(intake, clock, metrics)
        return cls(gaps, intake, pending, Summaries(pending, clock, marker, replica=str(uuid7())))

    def begin(self, background: Background) -> None:
        """What goes on beside requests. `summaries.stop` comes after its end."""
        background.every("summaries", LOOK_EVERY_S, self.summaries.look)
        background.start("pending", self.pending.run)
