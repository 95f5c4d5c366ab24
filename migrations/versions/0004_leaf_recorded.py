"""Finding a period in the log by its leaves, which are hashed and never go, rather than by its bodies.

Entries come nearly in the order of their times, so that a few blocks of the table are a day: the index is some pages however long the log
is, and costs who sequences nothing that can be measured.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.execute("CREATE INDEX leaf_recorded ON audit.leaf USING brin (recorded) WITH (autosummarize = on)")
