"""Registry of quotas and keys, and the intake of the log.

Rights are the point: the service may change quotas and keys but never rewrite history, and may hand entries to the log
but neither read nor change them. Works on PostgreSQL 15 to 18. Roles exist before migrations run.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TENANT_QUOTA = """
CREATE TABLE registry.tenant_quota (
  tenant       text PRIMARY KEY CHECK (char_length(tenant) BETWEEN 1 AND 128),
  version      bigint NOT NULL CHECK (version >= 0),
  deleted      boolean NOT NULL,
  qps          numeric(13, 6) CHECK (qps > 0),
  tpm          bigint CHECK (tpm > 0),
  concurrency  bigint CHECK (concurrency > 0),
  rate_factors jsonb NOT NULL DEFAULT '{}',
  costs        jsonb NOT NULL DEFAULT '{}',
  sla_class    text NOT NULL DEFAULT 'standard',
  region       text NOT NULL DEFAULT '',
  zone         text NOT NULL DEFAULT 'UTC',
  updated      timestamptz NOT NULL,
  changed      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  CHECK (deleted OR num_nonnulls(qps, tpm, concurrency) > 0)
)
"""

QUOTA_HISTORY = """
CREATE TABLE registry.quota_history (
  tenant    text NOT NULL,
  version   bigint NOT NULL CHECK (version > 0),
  operation text NOT NULL CHECK (operation IN ('create', 'update', 'delete')),
  before    json,
  after     json,
  diff      json NOT NULL,
  operator  text NOT NULL,
  reason    text NOT NULL,
  at        timestamptz NOT NULL,
  PRIMARY KEY (tenant, version)
)
"""

API_KEY = """
CREATE TABLE registry.api_key (
  id      uuid PRIMARY KEY,
  name    text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 128),
  digest  bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
  roles   text[] NOT NULL CHECK (cardinality(roles) > 0
            AND roles <@ ARRAY['gateway', 'operator', 'approver', 'auditor', 'admin']),
  tenants text[] NOT NULL,
  created timestamptz NOT NULL,
  expires timestamptz,
  revoked timestamptz,
  changed xid8 NOT NULL DEFAULT pg_current_xact_id()
)
"""

INTAKE = """
CREATE TABLE audit.intake (
  id        uuid PRIMARY KEY,
  retention text NOT NULL CHECK (retention ~ '^d[1-9][0-9]{2,3}$'),
  recorded  timestamptz NOT NULL,
  body      bytea NOT NULL
)
"""

REFUSE_CHANGE = """
CREATE FUNCTION registry.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of %.% is refused: it only grows', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
"""

STATEMENTS = (
    "CREATE SCHEMA audit",
    TENANT_QUOTA,
    # Readers ask for all rows of transactions that their last look could not see yet.
    "CREATE INDEX tenant_quota_changed ON registry.tenant_quota (changed)",
    QUOTA_HISTORY,
    API_KEY,
    "CREATE INDEX api_key_changed ON registry.api_key (changed)",
    # A name stands for one key at a time; a revoked key's name is free again.
    "CREATE UNIQUE INDEX api_key_name ON registry.api_key (name) WHERE revoked IS NULL",
    INTAKE,
    REFUSE_CHANGE,
    # ALWAYS: an ordinary trigger is skipped under session_replication_role = replica.
    "CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON registry.quota_history FOR EACH ROW EXECUTE FUNCTION registry.refuse_change()",
    "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON registry.quota_history FOR EACH STATEMENT EXECUTE FUNCTION registry.refuse_change()",
    "ALTER TABLE registry.quota_history ENABLE ALWAYS TRIGGER no_change",
    "ALTER TABLE registry.quota_history ENABLE ALWAYS TRIGGER no_truncate",
    "GRANT USAGE ON SCHEMA registry TO sluice_registry",
    "GRANT SELECT, INSERT, UPDATE ON registry.tenant_quota, registry.api_key TO sluice_registry",
    "GRANT SELECT, INSERT ON registry.quota_history TO sluice_registry",
    "GRANT USAGE ON SCHEMA audit TO sluice_registry, sluice_intake, sluice_log",
    "GRANT INSERT ON audit.intake TO sluice_registry, sluice_intake",
)


def upgrade() -> None:
    """Create tables, the triggers that keep history append-only, and each role's least rights."""
    for statement in STATEMENTS:
        op.execute(statement)
