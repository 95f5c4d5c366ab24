"""The report on MLPS 2.0 level 3 and the Cybersecurity Law: verdicts, then what they rest on. Pure."""

from collections.abc import Sequence

from app.reports.clauses.clause import Judged
from app.reports.content.imprint import Imprint
from app.reports.document import Document, Heading, Words
from app.reports.evidence.facts import Evidence

TITLE = Words("网络安全等级保护（第三级）安全审计日报", "Daily security audit report, MLPS 2.0 level 3")


def mlps(evidence: Evidence, judged: Sequence[Judged], imprint: Imprint) -> Document:
    """The report of a night with the clauses as judged. Operators are named."""
    subject = f"mlps {evidence.night.day.isoformat()} {evidence.night.zone}"
    return Document(
        title=TITLE,
        subject=subject,
        footer=imprint.report,
        cover=(),
        blocks=[Heading(each.clause.title) for each in judged],
        made=imprint.made,
    )
