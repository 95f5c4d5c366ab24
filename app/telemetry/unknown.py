"""Several values of which some may be unknown."""

from collections.abc import Iterable


def all_known(values: Iterable[float | None]) -> list[float]:
    """The values, or none at all where one is unknown: it could be the worst, and the others would hide it."""
    every = list(values)
    told = [value for value in every if value is not None]
    return told if len(told) == len(every) else []
