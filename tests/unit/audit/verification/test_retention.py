"""When bodies may go, and what has to say that they went."""

from datetime import UTC, datetime

import pytest

from app.audit.format.leaf import Leaf
from app.audit.verification.retention import Purged, kept_until

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("shelf", "kept"),
    [
        ("d365-2026-11", "2027-12-01T00:00:00.000000Z"),
        ("d400-2026-12", "2028-02-05T00:00:00.000000Z"),  # 400 days after the first of January
        ("d365-2027-02", "2028-02-29T00:00:00.000000Z"),
        ("d100-2026-01", "2026-05-12T00:00:00.000000Z"),
        ("d9999-2026-01", "2053-06-18T00:00:00.000000Z"),
    ],
)
def test_a_shelf_is_kept_for_its_days_after_its_month(shelf: str, kept: str):
    """The youngest body that a shelf can hold is of the last instant of its month."""
    assert kept_until(shelf) == kept


@pytest.mark.parametrize(
    "shelf", ["", "d365", "d365-2026-00", "d365-2026-13", "d99-2026-11", "d0365-2026-11", "d365-2026-11 ", "d365-9999-12", "x"]
)
def test_another_name_is_no_shelf(shelf: str):
    """What the log would never make is kept for ever."""
    assert kept_until(shelf) is None


def leaf(seq: int, recorded: str = "2026-11-30T23:59:59.999999Z") -> Leaf:
    return Leaf(seq, f"01900000-0000-7000-8000-{seq:012}", recorded, "d365", bytes(32))


def purge(seq: int, first: int, last: int, count: int) -> tuple[Leaf, dict]:
    """An entry that says that bodies of the shelf went, after their time."""
    return leaf(seq, "2028-01-01T00:00:00.000000Z"), {"shelf": "d365-2026-11", "first": first, "last": last, "count": count}


@pytest.mark.parametrize(
    ("purges", "faults"),
    [
        ([purge(9, 2, 5, 3)], 0),
        ([purge(9, 2, 3, 2), purge(10, 5, 5, 1)], 0),
        ([purge(9, 2, 3, 2)], 1),
        ([purge(9, 2, 5, 2)], 1),
        ([purge(9, 3, 5, 3)], 1),
        ([], 1),
    ],
)
def test_purges_of_a_shelf_count_together(purges: list[tuple[Leaf, dict]], faults: int):
    """What went has to lie within what the purges of its shelf name, and be no more than they count."""
    purged = Purged(NOW)
    for seq in (2, 3, 5):
        purged.body(leaf(seq))
    for entry, body in purges:
        purged.purge(entry, body)

    assert [(first, last) for first, last, _ in purged.faults()] == [(2, 5)] * faults


def test_a_shelf_that_is_not_emptied_needs_nothing():
    """A purge without a body that is gone is no fault; the file need not have the bodies' range."""
    purged = Purged(NOW)
    purged.purge(*purge(9, 2, 5, 3))

    assert list(purged.faults()) == []
