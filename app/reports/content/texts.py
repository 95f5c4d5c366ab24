"""All texts of the templates, for the check that the font has every character of them."""

from collections.abc import Iterator

from app.reports.clauses.clause import VERDICTS
from app.reports.clauses.loading import Clauses
from app.reports.content.register import Register


def template_texts(clauses: Clauses, register: Register) -> Iterator[str]:
    """Each text that a report can have beside data from the log."""
    for words in VERDICTS.values():
        yield from (words.zh, words.en)
    for clause in (*clauses.mlps, *clauses.gdpr):
        for words in (clause.title, clause.requirement):
            yield from (words.zh, words.en)
    yield from (activity.id for activity in register.activities)
