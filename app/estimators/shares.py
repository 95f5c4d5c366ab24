"""Whole shares of a whole total: by largest remainder, so that they sum to exactly the total and never above it (C8, B11)."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

K = TypeVar("K")


def arbitrated(bases: Mapping[str, int], factors: Mapping[str, float]) -> dict[str, int]:
    """max_num_seqs of each instance of one model: base · factor, rounded together, from 1 to its base (B11).

    Their sum is that of all base · factor, rounded down and held to one each; a factor counts as 1 at most. Instances
    without a base above 0 are left out. Raises ValueError where a factor is negative or no number.
    """
    weights = {node: base * min(Fraction(1), _exact(factors[node])) for node, base in bases.items() if base > 0}
    total = max(len(weights), math.floor(sum(weights.values())))
    shares = _bounded(total, weights, dict.fromkeys(weights, 1), bases)
    return {node: shares[node] for node in weights}


def _bounded(total: int, weights: Mapping[K, Fraction], least: Mapping[K, int], most: Mapping[K, int]) -> dict[K, int]:
    """Proportional shares within bounds: who would be out of them stands at its bound, and the others share what that leaves.

    Those above their most are set aside first: what they leave may lift the others above their least.
    """
    shares: dict[K, int] = {}
    left, open_ = total, dict(weights)
    while open_:
        whole = sum(open_.values()) or Fraction(1)
        ideal = {key: left * weight / whole for key, weight in open_.items()}
        out = {key: most[key] for key in ideal if ideal[key] > most[key]} or {key: least[key] for key in ideal if ideal[key] < least[key]}
        if not out:
            return shares | _rounded(left, ideal)
        shares |= out
        left -= sum(out.values())
        open_ = {key: weight for key, weight in open_.items() if key not in out}
    return shares


def _rounded(total: int, ideal: Mapping[K, Fraction]) -> dict[K, int]:
    """Each share rounded down, and one more for the largest remainders until they sum to the total."""
    shares = {key: math.floor(share) for key, share in ideal.items()}
    by_remainder = sorted(ideal, key=lambda key: shares[key] - ideal[key])
    for key in by_remainder[: total - sum(shares.values())]:
        shares[key] += 1
    return shares


def _exact(weight: float) -> Fraction:
    """The number that its decimals say: 40 times 0.7 is 28, which the nearest binary fractions would miss."""
    if not 0 <= weight < math.inf:
        raise ValueError(f"weight: must be a number of 0 or more, not {weight}")
    return Fraction(repr(weight))
