"""${message}.

Expand first, contract a release later: the version before must go on working on the new schema.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """${message}."""
    ${upgrades if upgrades else "op.execute('')"}
