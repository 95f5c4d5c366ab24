"""The chapter that says plainly which controls are not in place, or not known. Pure."""

from app.reports.content.imprint import Imprint
from app.reports.content.parts import Chapter
from app.reports.content.wording import sections as wording
from app.reports.document import Column, Paragraph, Table
from app.reports.evidence.facts import Evidence

CONTROLS = (Column(wording.CONTROL, 1),)


def controls(evidence: Evidence, imprint: Imprint) -> Chapter:
    """What the log or the imprint shows to be there is left out; the rest is not there."""
    missing = [
        (wording.NO_PURGE, evidence.of("audit.purge").total == 0),
        (wording.NO_ERASURE, all((each.kind, each.outcome) != ("subject.erasure", "done") for each in evidence.kinds)),
        (wording.NO_ANCHOR, evidence.integrity.anchors == 0),
        (wording.NO_TIMESTAMP, not imprint.timestamp),
        (wording.NO_BACKUP, True),
        (wording.NO_HSM, True),
        (wording.NO_CERTIFIED, True),
        (wording.NO_SECOND_FACTOR, True),
        (wording.NO_REVIEW, True),
    ]
    table = Table(CONTROLS, [(words,) for words, absent in missing if absent])
    return Chapter(wording.CONTROLS, before=[Paragraph(wording.CONTROLS_INTRODUCTION), table])
