"""What the manifest counts and names of a night: the same as its reports do."""

from app.reports.clauses.measures import measure
from app.reports.document import Facts
from app.reports.making.folder import counts_of
from tests.fixtures.night import NightLog, allowed, cancelled, confirmed, refused, unconfirmed
from tests.fixtures.report_content import english, mlps_of


def test_accesses_are_counted_alike_everywhere() -> None:
    """Two that were left open, one confirmed and one cancelled since, one allowed and one refused are four for manifest, cover and clauses."""
    night = NightLog.of(unconfirmed(1), confirmed(1), unconfirmed(2), cancelled(2), allowed(3), refused(4)).evidence()
    shown = {english(label): value for block in mlps_of(night).cover if isinstance(block, Facts) for label, value in block.pairs}
    assert counts_of(night)["sensitive_accesses"] == 4
    assert shown["sensitive accesses / refused"] == "4 / 1"
    assert measure(night, ["accesses_sensitive"])["accesses_sensitive"].value == 4
