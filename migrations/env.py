"""How Alembic reaches the database: as the owner of the schemas, one transaction, never waiting long for a lock.

The caller hands in an open connection as `config.attributes["connection"]`, or a URL as `sqlalchemy.url`.
"""

from alembic import context
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

LOCK_TIMEOUT = "4s"  # a migration that cannot get its lock must fail before it queues up all traffic behind it
STATEMENT_TIMEOUT = "30s"  # longer work belongs into a batched script, not into a migration
VERSION_SCHEMA = "registry"  # where alembic_version lives: `public` is closed to ordinary roles since PostgreSQL 15


def _run(connection: Connection) -> None:
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    # Asked first, because CREATE SCHEMA IF NOT EXISTS wants the right to create even where there is nothing to do.
    if connection.scalar(text("SELECT to_regnamespace(:name)"), {"name": VERSION_SCHEMA}) is None:
        connection.execute(text(f"CREATE SCHEMA {VERSION_SCHEMA}"))
    connection.commit()
    context.configure(connection=connection, version_table_schema=VERSION_SCHEMA, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()


def _migrate() -> None:
    connection = context.config.attributes.get("connection")
    if connection is not None:
        _run(connection)
        return
    url = context.config.get_main_option("sqlalchemy.url")
    if not url:
        raise ValueError("migrations need a connection or sqlalchemy.url; `sluice serve` hands one in")
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as opened:
        _run(opened)


_migrate()
