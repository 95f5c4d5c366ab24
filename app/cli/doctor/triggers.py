"""Whether the database still refuses changes of what stands: the triggers that do it, on every table and shelf, fire always.

Who owns the tables can switch them off and on again; only a checkpoint kept elsewhere tells what happened in between.
When down: a psycopg.Error; the caller says what that means.
"""

from typing import Any

from psycopg import AsyncConnection

_HEAD = "SELECT oid FROM pg_class WHERE relname = 'head' AND relnamespace = to_regnamespace('audit')"
_UNGUARDED = """
WITH guarded AS (
  SELECT c.oid, format('%I.%I', nspname, relname) AS name,
         CASE WHEN relname IN ('head', 'approval') THEN ARRAY['move_forward', 'no_delete', 'no_truncate']
              ELSE ARRAY['no_change', 'no_truncate'] END AS triggers
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
  WHERE (nspname = 'audit' AND relname IN ('head', 'leaf', 'subtree', 'body', 'checkpoint', 'certificate'))
     OR (nspname = 'registry' AND relname IN ('quota_history', 'approval'))
     OR c.oid IN (SELECT inhrelid FROM pg_inherits JOIN pg_class AS body ON body.oid = inhparent
                  WHERE body.relname = 'body' AND body.relnamespace = n.oid AND nspname = 'audit' AND c.relkind = 'r')
)
SELECT name, trigger FROM guarded, unnest(triggers) AS trigger
WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = guarded.oid AND tgname = trigger AND tgenabled = 'A')
ORDER BY name, trigger
"""


async def unguarded(connection: AsyncConnection[Any]) -> list[str] | None:
    """Triggers that are missing or do not fire always, as `trigger on table`; None where there is no log yet. Any role may ask."""
    if not await (await connection.execute(_HEAD)).fetchone():
        return None
    rows = await (await connection.execute(_UNGUARDED)).fetchall()
    return [f"{trigger} on {table}" for table, trigger in rows]
