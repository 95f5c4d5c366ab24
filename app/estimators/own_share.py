"""How many of our reserved tokens are in a cache already, where others use it, too (B6).

A page tells what is free, not whose the rest is. Whatever was in use when we held nothing is others'; what filled up since
may be ours, up to what we hold. Others come and go, so the bound on theirs is given up slowly, at the pace at which what we
reserved must have come into the cache.
"""

HALF_LIFE_MS = 5_000.0
"""A prompt is computed within seconds: after some of them, what we hold is taken to be in the cache."""


class OwnShare:
    """One cache. `push` answers how many of our held tokens are counted as in it: from 0 to what we hold."""

    def __init__(self) -> None:
        self._without_ours: float | None = None
        """What would be free without us."""
        self._pushed_ms = 0.0

    def push(self, free_tokens: int | None, held_tokens: int, now_ms: float, *, capacity_tokens: int | None = None) -> int:
        """Take what is free and what our leases hold. Unknown free room begins anew, with nothing of ours in the cache.

        Where the size of the cache is known, no more is ours than is in use at all.
        """
        if free_tokens is None:
            self._without_ours = None
            return 0
        most = float(free_tokens + held_tokens)
        if self._without_ours is None:
            self._without_ours = float(free_tokens)
        else:
            kept = 0.5 ** ((now_ms - self._pushed_ms) / HALF_LIFE_MS)
            bounded = min(max(self._without_ours, free_tokens), most)
            self._without_ours = most - (most - bounded) * kept
        self._pushed_ms = now_ms
        empty = self._without_ours if capacity_tokens is None else min(self._without_ours, max(free_tokens, capacity_tokens))
        return int(empty - free_tokens)
