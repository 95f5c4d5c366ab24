"""The gauge of how old the newest night is."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.reports.shelf.age import ShelfAge
from app.reports.shelf.shelf import Shelf, ShelfDown
from tests.fixtures.signed_reports import Keys, night

REPORT = "2026-11-29-asia-shanghai-1"
"""What the manifest of these fixtures says; its day ends at 16:00 UTC."""


def ages(metrics: Metrics) -> dict[str, float]:
    """Seconds by zone."""
    return {sample.labels["zone"]: sample.value for each in metrics.report_age.collect() for sample in each.samples}


async def test_the_age_is_that_of_the_newest_day_whose_manifest_can_be_read(tmp_path: Path):
    """From the end of that day, by zone; a younger folder without a manifest counts for nothing, and an empty shelf has no age."""
    metrics = Metrics()
    age = ShelfAge(Shelf(tmp_path), ManualClock(datetime(2026, 11, 30, 18, tzinfo=UTC)), metrics)
    await age.look()
    assert ages(metrics) == {}

    (tmp_path / REPORT).mkdir()
    (tmp_path / "2026-11-30-asia-shanghai-1").mkdir()
    (tmp_path / REPORT / "manifest.json").write_bytes(night(Keys.make())["manifest.json"])
    await age.look()
    assert ages(metrics) == {"Asia/Shanghai": 26 * 3600.0}


async def test_a_shelf_that_cannot_be_read_has_no_age(tmp_path: Path):
    """What was known before is not told any longer."""
    (tmp_path / "file").write_text("no folder")
    metrics = Metrics()
    metrics.report_age.labels("UTC").set(1)
    with pytest.raises(ShelfDown):
        await ShelfAge(Shelf(tmp_path / "file"), ManualClock(datetime(2026, 11, 30, tzinfo=UTC)), metrics).look()
    assert ages(metrics) == {}
