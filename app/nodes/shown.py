"""What of our own work a page can show: no more than was there when it last moved.

A page that stands still while calls of ours are sent there shows none of them. Without this a dead engine whose page is
idle would look empty for ever and draw everything.
"""

from collections.abc import Collection
from dataclasses import dataclass

from app.limiter.in_flight import Held
from app.telemetry.snapshot import Reading
from app.telemetry.view import NodeModel


@dataclass(frozen=True, slots=True)
class _Seen:
    held: Held
    judged_ms: float


class Shown:
    """By model and node what leases of ours held on the node when its page last moved, less what has ended since."""

    def __init__(self) -> None:
        self._seen: dict[NodeModel, _Seen] = {}

    def of(self, key: NodeModel, reading: Reading, held: Held, now_ms: float) -> Held:
        """What the page can show of what is held now."""
        before = self._seen.get(key)
        stands = before is not None and reading.still_ms is not None and reading.still_ms >= now_ms - before.judged_ms
        shown = _least(before.held, held) if before is not None and stands else held
        self._seen[key] = _Seen(shown, now_ms)
        return shown

    def keep(self, keys: Collection[NodeModel]) -> None:
        """Forget all but these."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}


def _least(one: Held, other: Held) -> Held:
    return Held(min(one.requests, other.requests), min(one.tokens, other.tokens))
