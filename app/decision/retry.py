"""When to come back, and the headers that say so to a client (A5; RateLimit header fields, draft 10)."""

import math
from collections.abc import Sequence
from functools import lru_cache

from app.limiter.charge import Level, Refusal
from app.policy.terms import QUOTAS

DEFAULT_RETRY_MS = 3000.0
"""A5: where nothing can be computed, 3 s."""
JITTER = 0.20
"""A5: a fifth, so that refused callers don't come back in one wave."""
MAX_RETRY_MS = 120_000
"""Longer waits make clients give up; they ask again and are told again."""
LONGEST_WINDOW_S = 30 * 24 * 3600
WINDOW_S = {"qps": 1, "tpm": 60}


def default_retry_ms(draw: float) -> int:
    """3 s plus or minus a fifth; `draw` is uniform in 0..1."""
    return round(DEFAULT_RETRY_MS * (1 - JITTER + 2 * JITTER * draw))


def retry_after_ms(refusals: Sequence[Refusal], draw: float) -> int | None:
    """Wait until every refusing bucket has room, plus 0..20 % jitter, at most 120 s; None where waiting cannot help.

    A bucket that cannot say (closed by a factor of 0, a lease without an end) counts with the default of 3 s.
    """
    if any(refusal.over_capacity for refusal in refusals):
        return None
    known = [refusal.frees_in_ms for refusal in refusals if refusal.frees_in_ms is not None]
    if len(known) < len(refusals):
        return min(MAX_RETRY_MS, max([default_retry_ms(draw), *(math.ceil(wait) for wait in known)]))
    return min(MAX_RETRY_MS, math.ceil(max(known) * (1 + JITTER * draw)))


def retry_headers(wait_ms: int | None) -> dict[str, str]:
    """Headers of a refusal: seconds for everyone, milliseconds and the flag for clients of the OpenAI kind."""
    if wait_ms is None:
        return {"x-should-retry": "false"}
    return {"Retry-After": str(max(1, math.ceil(wait_ms / 1000))), "retry-after-ms": str(wait_ms), "x-should-retry": "true"}


def limit_headers(levels: Sequence[Level]) -> dict[str, str]:
    """`RateLimit-Policy` and `RateLimit` of the tightest bucket per dimension, from the same atomic step as the decision."""
    told = [level for level in levels if level.bucket.dimension in QUOTAS]
    if not told:
        return {}
    policies = ", ".join([_policy(level.bucket.dimension, level.bucket.limit) for level in told])
    states = ", ".join(f'"{level.bucket.dimension}";r={int(level.remaining)};t={math.ceil(level.reset_ms / 1000)}' for level in told)
    return {"RateLimit-Policy": policies, "RateLimit": states}


@lru_cache(maxsize=4096)
def _policy(dimension: str, limit: float) -> str:
    """Whole numbers alone stand in the field, so less than one a window is one in a longer window, rounded to be no promise."""
    seconds = WINDOW_S.get(dimension)
    quota = max(1, math.floor(limit))
    if seconds is None:
        return f'"{dimension}";q={quota}'
    window = seconds if limit >= 1 or limit <= 0 else math.ceil(min(seconds / limit, LONGEST_WINDOW_S))
    return f'"{dimension}";q={quota};w={window}'
