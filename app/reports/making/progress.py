"""How far the making of a night is, for whoever looks on."""

from typing import Protocol

from app.reports.nights.night import Night


class Progress(Protocol):
    """Is told; does what it likes with it."""

    def stage(self, night: Night, name: str) -> None:
        """The next part of the work begins: such as `export`, `verify`, `write`, `sign`."""
        ...

    def entries(self, done: int, total: int) -> None:
        """So many entries of `total` are through the part that has begun."""
        ...


class Unwatched:
    """Nobody looks on."""

    def stage(self, night: Night, name: str) -> None:
        """Nothing."""

    def entries(self, done: int, total: int) -> None:
        """Nothing."""
