"""When a night can be reported on."""

from datetime import timedelta

import pytest

from app.reports.evidence.readiness import NightNotOver, check_over
from tests.fixtures.night import NIGHT


def test_a_night_that_is_not_over_is_refused():
    """Until a quarter of an hour after its midnight, and with the instant from when on it can be made."""
    check_over(NIGHT, NIGHT.closes)
    with pytest.raises(NightNotOver, match=r"2026-11-29 in Asia/Shanghai can be reported on from 2026-11-29T16:15:00\.000000Z on"):
        check_over(NIGHT, NIGHT.closes - timedelta(microseconds=1))
