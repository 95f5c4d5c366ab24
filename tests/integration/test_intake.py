"""Handing entries to the log on a real PostgreSQL."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.records.entry import Entry
from app.clock import SystemClock
from app.database import DatabaseUrls, create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.entries import numbered
from tests.fixtures.postgres import TIMEOUT_MS, rows_of

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def intake(database_urls: DatabaseUrls, metrics: Metrics) -> AsyncIterator[Intake]:
    engine = create_engine(database_urls.intake, DatabaseSettings())
    yield Intake(engine, metrics, Gaps(SystemClock()), timeout_ms=TIMEOUT_MS)
    await engine.dispose()


def entry(number: int) -> Entry:
    return numbered(number)


async def rows(urls: DatabaseUrls) -> list[tuple]:
    return await rows_of(urls.owner, "SELECT id, retention, recorded, body FROM audit.intake ORDER BY id")


async def test_an_entry_is_there_when_write_returns(intake: Intake, metrics: Metrics, database_urls: DatabaseUrls):
    """Written means committed, byte for byte, by a role that cannot read it back."""
    one, two = entry(1), entry(2)
    await intake.write(one, two)

    assert await rows(database_urls) == [(e.id, "d365", AT, e.body) for e in (one, two)]
    assert metrics.registry.get_sample_value("sluice_audit_intake_total", {"kind": "decisions.minute", "result": "written"}) == 2


async def test_a_repeated_entry_is_not_doubled(intake: Intake, database_urls: DatabaseUrls):
    """Writing the same entry again after an answer was lost leaves one."""
    one = entry(1)
    await intake.write(one)
    await intake.write(one, entry(2))

    assert len(await rows(database_urls)) == 2
