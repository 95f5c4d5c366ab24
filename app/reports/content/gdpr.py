"""The report on GDPR and PIPL: what was done with data of people, what they asked for, the register of processing. Pure."""

from collections.abc import Sequence

from app.reports.clauses.clause import Judged
from app.reports.content.consultations import consultations
from app.reports.content.cover import Imprint, cover, document
from app.reports.content.integrity import controls, integrity
from app.reports.content.parts import Masked
from app.reports.content.people import breaches, requests
from app.reports.content.processing import assessments, records
from app.reports.content.register import Register
from app.reports.content.verdicts import verdicts
from app.reports.content.wording.gdpr import GDPR_TITLE
from app.reports.document import Document
from app.reports.evidence.facts import Evidence
from app.reports.manifest import GDPR


def gdpr(evidence: Evidence, judged: Sequence[Judged], register: Register, imprint: Imprint) -> Document:
    """The report of a night with the clauses as judged. Operators are masked: numbers stand for them, also on the cover."""
    operators = Masked()
    chapters = [
        verdicts(judged),
        consultations(evidence, register, operators),
        requests(evidence, operators),
        breaches(evidence),
        records(register),
        assessments(register),
        integrity(evidence, operators),
        controls(evidence, imprint),
    ]
    first = cover(evidence, judged, chapters, imprint, file=GDPR, operators=operators)
    return document(GDPR_TITLE, evidence, imprint, first, chapters)
