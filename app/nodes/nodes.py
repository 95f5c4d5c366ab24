"""The room as one: everything that looks after nodes, built together, fed with views, kept current by its tasks."""

from collections.abc import Callable, Mapping

from app.background import Work
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.limiter.memory import MemoryLimiter
from app.nodes.control import EngineControl
from app.nodes.diary import Diary
from app.nodes.rules import NodeRules
from app.nodes.watch import NodeWatch
from app.observability.metrics import Metrics
from app.policy.nodes import NodePolicy
from app.telemetry.view import View


class Nodes:
    """What this replica knows of nodes and tells them."""

    def __init__(
        self,
        policy: NodePolicy,
        limiter: MemoryLimiter,
        clock: Clock,
        metrics: Metrics,
        models: Callable[[], Mapping[str, ModelSpec]],
        *,
        stale_ms: float,
    ) -> None:
        self._policy = policy
        self.watch = NodeWatch(limiter, clock, metrics, stale_ms=stale_ms)
        self._rules = NodeRules(policy, self.watch.answered, models)
        self._control = EngineControl(metrics)
        self._diary = Diary()

    def see(self, view: View) -> None:
        """Take a view: rules are asked about it, and engines told what rules left them, beside."""
        self._diary.see(view)
        self._rules.see(view)
        self._control.see(view)

    def work(self) -> Mapping[str, Work]:
        """What goes on beside requests, by name."""
        return {"nodes": self._rules.follow, "engine control": self._control.follow}

    async def close(self) -> None:
        """End all calls."""
        await self._policy.close()
