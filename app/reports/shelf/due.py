"""When a night's reports are to be made. Pure."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.reports.nights.night import LATE, Night
from app.setting_sections import EMBEDDED
from app.settings import Settings

OFF = "off"


def time_of(at: str) -> time | None:
    """The setting report.at, HH:MM; None for `off`."""
    return None if at == OFF else time.fromisoformat(at)


def not_scheduled(settings: Settings) -> str:
    """Why serve has no reports made although report.at names a time: its child could not open the keys. Empty where nothing is in the way."""
    passphrase = settings.report.passphrase
    if passphrase.startswith("fd:"):
        return "report.passphrase: a descriptor is read once, and not by a child"
    if not passphrase and settings.database.url != EMBEDDED:
        return "report.passphrase: not set, and the database is not the embedded one"
    return ""


def due(night: Night, at: time) -> datetime:
    """When that is: at that time of the day after it by the clock of its zone, and not before the night is over.

    A time that the clocks jump over is read by the offset before the jump; one that comes twice is the first.
    """
    day = night.day + timedelta(days=1)
    return max(night.closes, datetime.combine(day, at, ZoneInfo(night.zone)).astimezone(UTC))


def newest_due(now: datetime, zone: str, at: time) -> Night:
    """The newest night whose time has come."""
    night = Night.containing(now - LATE, zone).previous()
    while not night.exists or due(night, at) > now:
        night = night.previous()
    return night
