"""The report on GDPR and PIPL: what was done with data of people, what they asked for, the register of processing. Pure."""

from collections.abc import Sequence

from app.reports.clauses.clause import Judged
from app.reports.content.imprint import Imprint
from app.reports.content.register import Register
from app.reports.document import Document, Heading, Words
from app.reports.evidence.facts import Evidence

TITLE = Words("个人信息保护日报（GDPR 与《个人信息保护法》）", "Daily report on personal data, GDPR and PIPL")


def gdpr(evidence: Evidence, judged: Sequence[Judged], register: Register, imprint: Imprint) -> Document:
    """The report of a night with the clauses as judged. Operators are masked."""
    subject = f"gdpr {evidence.night.day.isoformat()} {evidence.night.zone} {register.version}"
    return Document(
        title=TITLE,
        subject=subject,
        footer=imprint.report,
        cover=(),
        blocks=[Heading(each.clause.title) for each in judged],
        made=imprint.made,
    )
