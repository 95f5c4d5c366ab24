"""What the manifest counts and names of a night: the same as its reports do."""

from app.audit.records.policy import policy_activated
from app.reports.clauses.measures import measure
from app.reports.document import Facts
from app.reports.evidence.context import Context
from app.reports.making.folder import counts_of, revisions_of
from tests.fixtures.night import NOON, NightLog, allowed, as_logged, cancelled, confirmed, read, refused, unconfirmed
from tests.fixtures.report_content import english, mlps_of


def test_rules_of_a_quiet_night_are_those_of_before() -> None:
    """A day on which no entry names a revision has the one that came into force last; a change of the day names both."""
    older = Context(older={"rules": [as_logged(3, policy_activated(recorded=NOON, revision="r7", previous="r6"))]})
    assert revisions_of(NightLog.of(read()).evidence(context=older)) == ["r7"]
    changed = NightLog.of(policy_activated(recorded=NOON, revision="r8", previous="r7"))
    assert revisions_of(changed.evidence(context=older)) == ["r7", "r8"]
    assert revisions_of(NightLog.of(read()).evidence()) == []


def test_accesses_are_counted_alike_everywhere() -> None:
    """Two that were left open, one confirmed and one cancelled since, one allowed and one refused are four for manifest, cover and clauses."""
    night = NightLog.of(unconfirmed(1), confirmed(1), unconfirmed(2), cancelled(2), allowed(3), refused(4)).evidence()
    shown = {english(label): value for block in mlps_of(night).cover if isinstance(block, Facts) for label, value in block.pairs}
    assert counts_of(night)["sensitive_accesses"] == 4
    assert shown["sensitive accesses / refused"] == "4 / 1"
    assert measure(night, ["accesses_sensitive"])["accesses_sensitive"].value == 4
