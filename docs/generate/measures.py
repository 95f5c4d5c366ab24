"""docs/reference/measures.md, from the tables of figures that clauses may name."""

from app.reports.clauses.clause import VERDICTS
from app.reports.clauses.measures import MEASURES
from docs.generate.markdown import code, page, table

INTRO = """
What a clause of the compliance reports may name as evidence or in a case; [Write a clause](../how-to/write-a-clause.md) says how.
Each is one number about one night. A figure that nobody can know is unknown, and a clause that needs it is for a person to judge.
"""


def measures_page() -> str:
    """Every figure by name, and the verdicts."""
    figures = [(code(name), each.label.en, each.label.zh, each.unit.en) for name, each in sorted(MEASURES.items())]
    return page(
        "Figures for clauses",
        INTRO.strip(),
        table(("name", "what it is", "as reports print it", "unit"), figures),
        "## Verdicts",
        table(("name", "as reports print it"), [(code(name), f"{words.zh} {words.en}") for name, words in VERDICTS.items()]),
    )
