"""Python's collector, told to stay out of the way: a full collection stops every request for as long as it looks at all objects.

Counting references frees nearly everything here; cycles come from exceptions and die young. So what exists at the start is set
aside, young objects are looked at in small portions, and all of them only once an hour.
"""

import gc

YOUNG, MIDDLE = 5_000, 10
"""Objects per look at the young (under 1 ms), and such looks per look at the middle generation (a few ms)."""
NEVER = 1_000_000
FULL_EVERY_S = 3600.0
"""How long a cycle that grew old may stay."""


def settle() -> None:
    """Set aside what exists now, and leave full collections to `collect`. Call it once, when everything is built."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, NEVER)


async def collect() -> None:
    """A full collection, to be had every hour."""
    gc.collect()
