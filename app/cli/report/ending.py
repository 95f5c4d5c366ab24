"""How a command that SIGTERM ends leaves: as by an error, so that what is half made is removed on the way out."""

import signal
from typing import NoReturn


def clean_up_on_sigterm() -> None:
    """From now on SIGTERM raises SystemExit in the main thread, with the status that a shell has for a program which a signal ended."""
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
