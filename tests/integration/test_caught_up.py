"""Waiting until the log has what was handed over, in a real PostgreSQL."""

from datetime import timedelta

import pytest

from app.audit.reading.caught_up import LogBehind, caught_up
from app.observability.metrics import Metrics
from app.transaction import Transactions
from tests.fixtures.entries import numbered
from tests.fixtures.log import GrownLog
from tests.fixtures.postgres import TIMEOUT_MS


async def test_what_was_recorded_by_then_is_waited_for(grown_log: GrownLog):
    """Not what says a later time, unless all is to be there; when it is sequenced the wait is over."""
    transactions = Transactions(grown_log.engine, Metrics(), call="waiting", timeout_ms=TIMEOUT_MS)
    now = grown_log.clock.utcnow()
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)

    async def sequenced(_: float) -> None:
        await grown_log.add()

    await caught_up(transactions, None, 1, nap)
    await grown_log.intake.write(numbered(1, recorded=now))
    await caught_up(transactions, now - timedelta(seconds=1), 1, nap)
    assert naps == []
    for until in (now, None):
        with pytest.raises(LogBehind, match="recorded at 2026-"):
            await caught_up(transactions, until, 1, nap)
    assert sum(naps) == pytest.approx(2.0, abs=0.1)
    await caught_up(transactions, now, 1, sequenced)
