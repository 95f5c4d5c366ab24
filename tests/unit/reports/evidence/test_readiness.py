"""When a night can be reported on."""

from datetime import timedelta

import pytest

from app.reports.evidence.readiness import NightBeforeLog, NightNotOver, check_begun, check_over
from tests.fixtures.night import NIGHT


def test_a_night_that_is_not_over_is_refused():
    """Until a quarter of an hour after its midnight, and with the instant from when on it can be made."""
    check_over(NIGHT, NIGHT.closes)
    with pytest.raises(NightNotOver, match=r"2026-11-29 in Asia/Shanghai can be reported on from 2026-11-29T16:15:00\.000000Z on"):
        check_over(NIGHT, NIGHT.closes - timedelta(microseconds=1))


def test_a_night_before_the_log_began_is_refused():
    """With the day of its first entry in that zone; a day on which it began has a report, and so has any of a log that nobody wrote to yet."""
    check_begun(NIGHT, None)
    check_begun(NIGHT, NIGHT.end - timedelta(microseconds=1))
    with pytest.raises(NightBeforeLog, match="2026-11-29 in Asia/Shanghai was over before the log began on 2026-11-30") as refused:
        check_begun(NIGHT, NIGHT.end)
    assert refused.value.advice == "Name a day from 2026-11-30 on."
