"""What the registry has of a person beside the log: how many rows of which table. What they say stands in entries of the log, too.

When down: DatabaseDown, and no report is given.
"""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.observability.metrics import Metrics
from app.reports.subjects.person import Person, Role
from app.transaction import Transactions

_ROWS: Mapping[Role, Mapping[str, str]] = {
    "subject": {"registry.approval": "subject = :subject"},
    "tenant": {
        "registry.tenant_quota": "tenant = :name",
        "registry.quota_history": "tenant = :name",
        "registry.approval": "tenant = :name AND subject IS NULL",
    },
    "operator": {
        "registry.api_key": "name = :name",
        "registry.quota_history": "operator = :name",
        "registry.approval": ":name IN (asked_by, answered_by, revoked_by)",
    },
}
_TENANT = text(
    "SELECT EXISTS (SELECT FROM registry.tenant_quota WHERE tenant = :name) OR EXISTS (SELECT FROM registry.quota_history WHERE tenant = :name)"
)


class Outside:
    """Counts with an engine of role sluice_registry."""

    def __init__(self, engine: AsyncEngine, metrics: Metrics, *, timeout_ms: int) -> None:
        self._transactions = Transactions(engine, metrics, call="registry of a person", timeout_ms=timeout_ms)

    async def held(self, person: Person, pseudonym: str) -> Mapping[str, int]:
        """Rows by table, 0 among them. Raises DatabaseDown."""

        async def count(connection: AsyncConnection) -> dict[str, int]:
            found = {}
            for table, condition in _ROWS[person.role].items():
                statement = text(f"SELECT count(*) FROM {table} WHERE {condition}")  # noqa: S608 - constants
                names = {"name": person.name, "subject": pseudonym}
                found[table] = int(await connection.scalar(statement, {key: names[key] for key in names if f":{key}" in condition}) or 0)
            return found

        return await self._transactions.run(count)

    async def has_tenant(self, tenant: str) -> bool:
        """Whether a quota is, or ever was, given to `tenant`. Raises DatabaseDown."""
        return await self._transactions.run(lambda connection: _has_tenant(connection, tenant))


async def _has_tenant(connection: AsyncConnection, tenant: str) -> bool:
    return bool(await connection.scalar(_TENANT, {"name": tenant}))
