"""The table of approvals holds its rules itself, whoever writes to it."""

import psycopg
import pytest

from app.database import DatabaseUrls, conninfo
from tests.fixtures.postgres import rows_of

INSERT = (
    "INSERT INTO registry.approval (id, tenant, model, action, subject, expires, asked, asked_by, asked_key, asked_reason) "
    "VALUES (gen_random_uuid(), 'a', 'm', 'train', NULL, now() + interval '1 day', now(), 'asker', 'k-1', 's1:x')"
)
ANSWER = "UPDATE registry.approval SET state = '{state}', answered = now(), answered_by = '{by}', answered_key = '{key}', answered_reason = 's1:y'"
REVOKE = "UPDATE registry.approval SET state = 'revoked', revoked = now(), revoked_by = 'x', revoked_key = 'k-3', revoked_reason = 's1:z'"
APPROVE = ANSWER.format(state="approved", by="other", key="k-2")
AGAINST_THE_RULES: tuple[tuple[str, ...], ...] = (
    (ANSWER.format(state="approved", by="asker", key="k-2"),),
    (ANSWER.format(state="approved", by="other", key="k-1"),),
    ("UPDATE registry.approval SET state = 'approved'",),
    (REVOKE,),
    (ANSWER.format(state="refused", by="other", key="k-2"), APPROVE),
    (APPROVE, APPROVE),
    (APPROVE, REVOKE, APPROVE),
    (APPROVE, f"{REVOKE}, answered_by = 'somebody'"),
    (APPROVE.replace("now()", "now() + interval '2 days'"),),
    ("DELETE FROM registry.approval",),
    ("TRUNCATE registry.approval",),
    (INSERT.replace("NULL", "'alice'"),),
    (INSERT.replace("'1 day'", "'367 days'"),),
    (INSERT.replace("asked_reason)", "asked_reason, state)").replace("'s1:x'", "'s1:x', 'refused'"),),
)
"""Statements after a fresh INSERT, of which the last is refused."""


async def test_the_table_holds_the_rules_itself(superuser_url: str):
    """Even a superuser under replication, which skips ordinary triggers, gets no other order of states and no answer by who asked."""
    refused = (psycopg.errors.InsufficientPrivilege, psycopg.errors.CheckViolation)
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url)) as connection:
        for *before, last in AGAINST_THE_RULES:
            await connection.execute("SET LOCAL session_replication_role = replica")
            for statement in (INSERT, *before):
                await connection.execute(statement)
            with pytest.raises(refused):
                await connection.execute(last)
            await connection.rollback()


async def test_what_was_asked_never_changes(database_urls: DatabaseUrls):
    """The service's own role may move an approval, and change nothing of what was asked."""
    await rows_of(database_urls.registry, INSERT)
    for column in ("tenant", "model", "action", "purpose", "subject", "expires", "asked", "asked_by", "asked_key", "asked_reason", "id"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await rows_of(database_urls.registry, f"UPDATE registry.approval SET {column} = {column}")  # noqa: S608 - constants
