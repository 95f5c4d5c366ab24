"""What the log is told of rules: which came into force, and which were refused. These entries may wait (app/audit/intake/pending.py)."""

from collections.abc import Callable
from dataclasses import dataclass

from app.audit.records.entry import Entry
from app.audit.records.policy import policy_activated, policy_refused
from app.clock import Clock


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """Makes the entries and hands them to `add`, which never waits."""

    add: Callable[[Entry], None]
    clock: Clock

    def activated(self, revision: str, previous: str | None) -> None:
        """OPA confirmed that it runs `revision`; `previous` ran until then, None at a start."""
        self.add(policy_activated(recorded=self.clock.utcnow(), revision=revision, previous=previous))

    def refused(self, problem: str, revision: str | None, in_force: str | None) -> None:
        """A folder (no revision) or a bundle was refused; `in_force` stays."""
        self.add(policy_refused(recorded=self.clock.utcnow(), problem=problem, revision=revision, previous=in_force))
