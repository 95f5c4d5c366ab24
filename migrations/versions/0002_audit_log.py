"""The log proper: head, leaves, bodies by retention class and month, stored subtrees, checkpoints, certificates; keys of subjects.

Leaves, subtrees, checkpoints and certificates are for ever and hold nothing about people; bodies go when their time is over, a
whole shelf at once. What stands there is refused any change by triggers that fire ALWAYS, also for the owner and for replication.
An event trigger against ALTER and DROP would need a superuser, which migrations never are: those stay with who owns the tables.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# One row that is always there: whoever locks it sequences. `log` names this log for ever.
HEAD = """
CREATE TABLE audit.head (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  log      uuid NOT NULL DEFAULT gen_random_uuid(),
  size     bigint NOT NULL DEFAULT 0 CHECK (size >= 0),
  chain    bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(chain) = 32),
  frontier bytea NOT NULL DEFAULT '' CHECK (octet_length(frontier) = 32 * bit_count(size::bit(64)))
)
"""

# What is hashed of each entry, so that the retention of a body that is gone stays proven. The last column follows from it, by
# functions that depend on no setting, and names the table of the body.
LEAF = """
CREATE TABLE audit.leaf (
  seq        bigint PRIMARY KEY CHECK (seq >= 0),
  id         uuid NOT NULL UNIQUE,
  recorded   timestamptz NOT NULL,
  retention  text NOT NULL,
  body_hash  bytea NOT NULL CHECK (octet_length(body_hash) = 32),
  leaf_hash  bytea NOT NULL CHECK (octet_length(leaf_hash) = 32),
  chain_hash bytea NOT NULL CHECK (octet_length(chain_hash) = 32),
  shelf      text NOT NULL GENERATED ALWAYS AS (
    retention || '-' || date_part('year', timezone('UTC', recorded))::text
    || '-' || lpad(date_part('month', timezone('UTC', recorded))::text, 2, '0')
  ) STORED
)
"""

# Complete subtrees of every eighth level (app/audit/format/merkle.py), so that a proof reads a few hundred rows of any tree.
SUBTREE = """
CREATE TABLE audit.subtree (
  level smallint NOT NULL CHECK (level > 0),
  index bigint NOT NULL CHECK (index >= 0),
  hash  bytea NOT NULL CHECK (octet_length(hash) = 32),
  PRIMARY KEY (level, index)
)
"""

# All but `body` repeats what it says, for filters only, and is not hashed.
BODY = """
CREATE TABLE audit.body (
  shelf    text NOT NULL,
  seq      bigint NOT NULL,
  recorded timestamptz NOT NULL,
  kind     text NOT NULL,
  tenant   text,
  model    text,
  subject  text,
  decision text,
  body     bytea NOT NULL,
  PRIMARY KEY (shelf, seq)
) PARTITION BY LIST (shelf)
"""

CHECKPOINT = """
CREATE TABLE audit.checkpoint (
  size   bigint PRIMARY KEY CHECK (size > 0),
  note   text NOT NULL,
  signed timestamptz NOT NULL
)
"""

CERTIFICATE = """
CREATE TABLE audit.certificate (
  fingerprint bytea PRIMARY KEY CHECK (octet_length(fingerprint) = 32),
  role        text NOT NULL CHECK (role IN ('root', 'signer')),
  der         bytea NOT NULL,
  added       timestamptz NOT NULL
)
"""

# Wrapped by a key that only files hold. To destroy a subject's key is to erase what is sealed with it.
SUBJECT_KEY = """
CREATE TABLE registry.subject_key (
  id      uuid PRIMARY KEY,
  subject text NOT NULL UNIQUE,
  wrapped bytea NOT NULL,
  created timestamptz NOT NULL
)
"""

MOVE_FORWARD = """
CREATE FUNCTION audit.move_forward() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.log <> OLD.log OR NEW.size <= OLD.size THEN
    RAISE EXCEPTION 'the head of log % stays at % or moves forward, not to % of log %', OLD.log, OLD.size, NEW.size, NEW.log
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""

# Run with the owner's rights by the sequencer, which may make shelves and nothing else. A shelf is made as a table and attached:
# that waits for nobody who reads or inserts. The lock is the one that attaching takes: of two who want the same shelf, the second
# waits here and finds it made. Row triggers are cloned from the parent, TRUNCATE's are not.
MAKE_SHELF = """
CREATE FUNCTION audit.make_shelf(retention text, month date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  shelf text := retention || '-' || to_char(month::timestamp, 'YYYY-MM');
  part  text := format('audit.%I', concat('body_', replace(shelf, '-', '_')));
BEGIN
  IF (retention ~ '^d[1-9][0-9]{2,3}$' AND month BETWEEN DATE '2000-01-01' AND DATE '2999-12-31') IS NOT TRUE THEN
    RAISE EXCEPTION 'no shelf for retention % and month %', retention, month USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF to_regclass(part) IS NOT NULL THEN
    RETURN;
  END IF;
  LOCK TABLE audit.body IN SHARE UPDATE EXCLUSIVE MODE;
  IF to_regclass(part) IS NOT NULL THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE %s (LIKE audit.body INCLUDING ALL, CHECK (shelf = %L))', part, shelf);
  EXECUTE format('ALTER TABLE audit.body ATTACH PARTITION %s FOR VALUES IN (%L)', part, shelf);
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER no_change', part);
  EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION registry.refuse_change()', part);
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER no_truncate', part);
END $$
"""

# How far the sequencer is behind, without a look at what waits; counting ends where it is bad enough. A writer with wrong ideas of
# time may name an instant that no reader's calendar has.
BACKLOG = """
CREATE VIEW audit.backlog AS
SELECT count(*) AS entries, min(greatest(least(recorded, timestamptz '2999-12-31Z'), timestamptz '2000-01-01Z')) AS oldest
FROM (SELECT recorded FROM audit.intake ORDER BY id LIMIT 10000) AS waiting
"""

APPEND_ONLY = ("leaf", "subtree", "body", "checkpoint", "certificate")


def _append_only(table: str) -> tuple[str, ...]:
    return (
        f"CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON audit.{table} FOR EACH ROW EXECUTE FUNCTION registry.refuse_change()",
        f"CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit.{table} FOR EACH STATEMENT EXECUTE FUNCTION registry.refuse_change()",
        f"ALTER TABLE audit.{table} ENABLE ALWAYS TRIGGER no_change",
        f"ALTER TABLE audit.{table} ENABLE ALWAYS TRIGGER no_truncate",
    )


STATEMENTS = (
    # A queue: rows come and go all the time.
    "ALTER TABLE audit.intake SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)",
    # NOT VALID: what was handed over before may be larger; it must neither stop the upgrade nor be lost.
    "ALTER TABLE audit.intake ADD CONSTRAINT body_size CHECK (octet_length(body) BETWEEN 1 AND 1048576) NOT VALID",
    HEAD,
    "INSERT INTO audit.head DEFAULT VALUES",
    LEAF,
    SUBTREE,
    BODY,
    "CREATE INDEX body_kind ON audit.body (kind, seq)",
    "CREATE INDEX body_tenant ON audit.body (tenant, seq)",
    "CREATE INDEX body_model ON audit.body (model, seq) WHERE model IS NOT NULL",
    "CREATE INDEX body_subject ON audit.body (subject, seq) WHERE subject IS NOT NULL",
    "CREATE INDEX body_decision ON audit.body (decision) WHERE decision IS NOT NULL",
    "CREATE INDEX body_recorded ON audit.body USING brin (recorded)",
    CHECKPOINT,
    CERTIFICATE,
    SUBJECT_KEY,
    *(statement for table in APPEND_ONLY for statement in _append_only(table)),
    MOVE_FORWARD,
    "CREATE TRIGGER move_forward BEFORE UPDATE ON audit.head FOR EACH ROW EXECUTE FUNCTION audit.move_forward()",
    "CREATE TRIGGER no_delete BEFORE DELETE ON audit.head FOR EACH ROW EXECUTE FUNCTION registry.refuse_change()",
    "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit.head FOR EACH STATEMENT EXECUTE FUNCTION registry.refuse_change()",
    "ALTER TABLE audit.head ENABLE ALWAYS TRIGGER move_forward",
    "ALTER TABLE audit.head ENABLE ALWAYS TRIGGER no_delete",
    "ALTER TABLE audit.head ENABLE ALWAYS TRIGGER no_truncate",
    MAKE_SHELF,
    "REVOKE EXECUTE ON FUNCTION audit.make_shelf(text, date) FROM PUBLIC",
    BACKLOG,
    "GRANT USAGE ON SCHEMA audit TO sluice_sequencer",
    "GRANT SELECT, DELETE ON audit.intake TO sluice_sequencer",
    "GRANT SELECT, UPDATE (size, chain, frontier) ON audit.head TO sluice_sequencer",
    "GRANT SELECT, INSERT ON audit.leaf, audit.subtree, audit.body, audit.checkpoint, audit.certificate TO sluice_sequencer",
    "GRANT EXECUTE ON FUNCTION audit.make_shelf(text, date) TO sluice_sequencer",
    "GRANT SELECT ON audit.head, audit.leaf, audit.subtree, audit.body, audit.checkpoint, audit.certificate, audit.backlog TO sluice_log",
    "GRANT SELECT, INSERT ON registry.subject_key TO sluice_registry",
)


def upgrade() -> None:
    """Create the log's tables, the triggers that keep them append-only, and each role's least rights."""
    for statement in STATEMENTS:
        op.execute(statement)
