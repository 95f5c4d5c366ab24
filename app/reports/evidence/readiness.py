"""Whether a night's reports can be made: the log had begun, it is over, and nothing of it waits any more to come into the log. Pure."""

from datetime import datetime

from app.errors import Conflict, DependencyDown
from app.instants import rfc3339
from app.reports.nights.night import Night


class NightNotOver(Conflict):
    """The day is not over, or so shortly that counts of it may still be written down."""

    code = "night_not_over"
    hint = "Ask again at the instant that is named."


class NightBeforeLog(Conflict):
    """The day was over before the log began, so that nothing is known of it."""

    code = "night_before_log"
    hint = "Name a day on which there was a log."


class NightUnfinished(DependencyDown):
    """Entries of the day wait to be sequenced into the log, so that its reports would lack them."""

    code = "night_unfinished"
    hint = "Start `sluice audit run`, or see why it does not get on: /readyz names it `log`."


def check_over(night: Night, now: datetime) -> None:
    """Raises NightNotOver where something can still be added to `night`."""
    if now < night.closes:
        raise NightNotOver(
            f"--date: {night.day.isoformat()} in {night.zone} can be reported on from {rfc3339(night.closes)} on", field="date"
        )


def check_begun(night: Night, begun: datetime | None, option: str = "--date") -> None:
    """Raises NightBeforeLog where `night`, named by `option`, ended before the first entry of the log, which was recorded at `begun`; None of an empty log."""
    if begun is not None and night.end <= begun:
        first = Night.containing(begun, night.zone)
        raise NightBeforeLog(
            f"{option}: {night.day.isoformat()} in {night.zone} was over before the log began on {first.day.isoformat()}",
            hint=f"Name a day from {first.day.isoformat()} on.",
            field=option.lstrip("-"),
        )
