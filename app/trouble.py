"""When trouble is news: once for each reason while it lasts, and once when it is over."""


class Trouble:
    """The trouble with one thing that is tried again and again."""

    def __init__(self) -> None:
        self._told = ""

    @property
    def lasts(self) -> bool:
        """Whether it is not over."""
        return bool(self._told)

    def is_news(self, why: str) -> bool:
        """It failed for this reason: whether that was not told last."""
        new = why != self._told
        self._told = why
        return new

    def over(self) -> str:
        """It went well: the reason that is over now, empty where there was none."""
        told, self._told = self._told, ""
        return told
