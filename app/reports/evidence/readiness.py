"""Whether a night's reports can be made already: it is over, and nothing of it waits any more to come into the log. Pure."""

from datetime import datetime

from app.errors import Conflict, DependencyDown
from app.instants import rfc3339
from app.reports.nights.night import Night


class NightNotOver(Conflict):
    """The day is not over, or so shortly that counts of it may still be written down."""

    code = "night_not_over"
    hint = "Ask again at the instant that is named."


class NightUnfinished(DependencyDown):
    """Entries of the day wait to be sequenced into the log, so that its reports would lack them."""

    code = "night_unfinished"
    hint = "Start `sluice audit run`, or see why it does not get on: /readyz names it `log`."


def check_over(night: Night, now: datetime) -> None:
    """Raises NightNotOver where something can still be added to `night`."""
    if now < night.closes:
        raise NightNotOver(
            f"date: {night.day.isoformat()} in {night.zone} can be reported on from {rfc3339(night.closes)} on", field="date"
        )
