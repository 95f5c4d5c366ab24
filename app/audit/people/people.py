"""People as entries show them: pseudonyms to find them by, and texts that open only with a key of their own.

When down: as app/audit/people/subject_keys.py.
"""

from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from app.audit.people.pseudonyms import Pseudonyms
from app.audit.people.subject_keys import SubjectKey, SubjectKeys
from app.clock import Clock
from app.observability.metrics import Metrics


class People:
    """Pseudonyms and keys of subjects, addresses and operators."""

    def __init__(self, engine: AsyncEngine, secrets_dir: Path, clock: Clock, metrics: Metrics, *, timeout_ms: int) -> None:
        """`engine`: of the registry's role. The first start makes both master files. Raises ConfigError."""
        self.pseudonyms = Pseudonyms(secrets_dir)
        self.keys = SubjectKeys(engine, secrets_dir, clock, metrics, timeout_ms=timeout_ms)

    async def check(self) -> None:
        """Raises ConfigError where the keys of this database are another master file's, DependencyDown where nobody can tell."""
        await self.keys.check()

    async def operator_key(self, name: str) -> SubjectKey:
        """The key that seals what an operator writes. Raises as SubjectKeys.key does."""
        return await self.keys.key(self.pseudonyms.operator(name))
