"""Whether the intake has word of reports that is not in the log yet: so that no night is made twice, whatever the makers' clocks say."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Bodies have one spelling, in which a quote within a text is escaped: nothing else in them looks like this.
REPORTS_WAITING = """
CREATE VIEW audit.reports_waiting AS
SELECT count(*) AS entries FROM audit.intake WHERE position('"kind":"report.made"'::bytea IN body) > 0
"""


def upgrade() -> None:
    """Create the view, for the role that makes reports."""
    op.execute(REPORTS_WAITING)
    op.execute("GRANT SELECT ON audit.reports_waiting TO sluice_log")
