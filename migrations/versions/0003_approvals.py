"""Approvals: who asked for the use of a sensitive model, who answered, and until when that counts.

What was asked never changes: the service may only move the state forward, and a trigger that fires ALWAYS holds the order of
states whoever writes. That somebody else answered is a CHECK, so no fault of the code can let one approve for themselves.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Reasons are sealed under the key of the person concerned (registry.subject_key), and subjects are pseudonyms.
APPROVAL = """
CREATE TABLE registry.approval (
  id            uuid PRIMARY KEY,
  tenant        text NOT NULL CHECK (char_length(tenant) BETWEEN 1 AND 128),
  model         text NOT NULL CHECK (char_length(model) BETWEEN 1 AND 128),
  action        text NOT NULL CHECK (char_length(action) BETWEEN 1 AND 128),
  purpose       text CHECK (char_length(purpose) BETWEEN 1 AND 128),
  subject       text CHECK (subject ~ '^p1:[0-9a-f]{64}$'),
  expires       timestamptz NOT NULL,
  state         text NOT NULL DEFAULT 'asked' CHECK (state IN ('asked', 'approved', 'refused', 'revoked')),
  asked         timestamptz NOT NULL,
  asked_by      text NOT NULL,
  asked_key     text NOT NULL,
  asked_reason  text NOT NULL,
  answered        timestamptz,
  answered_by     text,
  answered_key    text,
  answered_reason text,
  revoked        timestamptz,
  revoked_by     text,
  revoked_key    text,
  revoked_reason text,
  changed       xid8 NOT NULL DEFAULT pg_current_xact_id(),
  CHECK (expires > asked AND expires - asked <= interval '366 days'),
  CHECK (answered_by <> asked_by AND answered_key <> asked_key),
  CHECK (answered < expires),
  CHECK (num_nulls(answered, answered_by, answered_key, answered_reason) = CASE state WHEN 'asked' THEN 4 ELSE 0 END),
  CHECK (num_nulls(revoked, revoked_by, revoked_key, revoked_reason) = CASE state WHEN 'revoked' THEN 0 ELSE 4 END)
)
"""

MOVE_APPROVAL = """
CREATE FUNCTION registry.move_approval() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state = 'asked' THEN
      RETURN NEW;
    END IF;
  ELSIF (OLD.state, NEW.state) IN (('asked', 'approved'), ('asked', 'refused')) THEN
    RETURN NEW;
  ELSIF (OLD.state, NEW.state) = ('approved', 'revoked')
        AND (OLD.answered, OLD.answered_by, OLD.answered_key, OLD.answered_reason)
            IS NOT DISTINCT FROM (NEW.answered, NEW.answered_by, NEW.answered_key, NEW.answered_reason) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'an approval is asked for, then approved or refused, and only an approved one is revoked'
    USING ERRCODE = 'insufficient_privilege';
END $$
"""

MOVED = "state, answered, answered_by, answered_key, answered_reason, revoked, revoked_by, revoked_key, revoked_reason, changed"

STATEMENTS = (
    APPROVAL,
    "CREATE INDEX approval_changed ON registry.approval (changed)",
    "CREATE INDEX approval_tenant ON registry.approval (tenant, id)",
    MOVE_APPROVAL,
    "CREATE TRIGGER move_forward BEFORE INSERT OR UPDATE ON registry.approval FOR EACH ROW EXECUTE FUNCTION registry.move_approval()",
    "CREATE TRIGGER no_delete BEFORE DELETE ON registry.approval FOR EACH ROW EXECUTE FUNCTION registry.refuse_change()",
    "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON registry.approval FOR EACH STATEMENT EXECUTE FUNCTION registry.refuse_change()",
    "ALTER TABLE registry.approval ENABLE ALWAYS TRIGGER move_forward",
    "ALTER TABLE registry.approval ENABLE ALWAYS TRIGGER no_delete",
    "ALTER TABLE registry.approval ENABLE ALWAYS TRIGGER no_truncate",
    "GRANT SELECT, INSERT ON registry.approval TO sluice_registry",
    f"GRANT UPDATE ({MOVED}) ON registry.approval TO sluice_registry",
)


def upgrade() -> None:
    """Create the table of approvals, the triggers that hold the order of its states, and the registry's rights on it."""
    for statement in STATEMENTS:
        op.execute(statement)
