"""From views of the engines to the generation of readings that questions see: the newest is published, one at a time."""

import asyncio
from collections.abc import Mapping
from typing import Any

from app.policy.policy import Generation, Policy
from app.policy.question import Section
from app.telemetry.view import View


class Readings:
    """Keeps the newest view, and publishes its readings whenever their content changes."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sections: dict[str, tuple[Mapping[str, Any], Section]] = {}
        self._news = asyncio.Event()
        self.view = View()
        """The newest view: its nodes and ages are newer than the published generation by one publish wait at most."""

    def see(self, view: View) -> None:
        """Take a view; publishing happens beside."""
        changed = view.generation != self.view.generation
        self.view = view
        if changed:
            self._news.set()

    async def publish(self) -> None:
        """Publish for ever. A view that comes while one is published replaces those that waited."""
        while True:
            await self._news.wait()
            self._news.clear()
            view = self.view
            await self._policy.publish(
                Generation(view.generation, {model: self._section(model, one.readings) for model, one in view.models.items()})
            )

    def _section(self, model: str, readings: Mapping[str, Any]) -> Section:
        """Views keep the same object while the content is the same, so each content is encoded once."""
        kept = self._sections.get(model)
        if kept is None or kept[0] is not readings:
            kept = self._sections[model] = (readings, Section.of(readings))
        return kept[1]
