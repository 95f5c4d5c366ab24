"""The report on MLPS 2.0 level 3 and the Cybersecurity Law: verdicts, then what they rest on. Pure."""

from collections.abc import Sequence

from app.reports.clauses.clause import Judged
from app.reports.content.changes import quotas, reads
from app.reports.content.cover import Imprint, cover, document
from app.reports.content.decisions import coverage, decisions
from app.reports.content.integrity import controls, integrity
from app.reports.content.parts import Named
from app.reports.content.sensitive import sensitive
from app.reports.content.verdicts import verdicts
from app.reports.content.wording.cover import LEVEL_THREE
from app.reports.content.wording.sections import MLPS_TITLE
from app.reports.document import Document
from app.reports.evidence.facts import Evidence
from app.reports.manifest import MLPS


def mlps(evidence: Evidence, judged: Sequence[Judged], imprint: Imprint) -> Document:
    """The report of a night with the clauses as judged. Operators are named."""
    operators = Named()
    chapters = [
        verdicts(judged),
        integrity(evidence, operators),
        decisions(evidence),
        coverage(evidence, operators),
        quotas(evidence, operators),
        sensitive(evidence, operators),
        reads(evidence, operators),
        controls(evidence, imprint),
    ]
    first = cover(evidence, judged, chapters, imprint, file=MLPS, operators=operators, level=LEVEL_THREE)
    return document(MLPS_TITLE, evidence, imprint, first, chapters)
