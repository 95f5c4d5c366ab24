"""All figures that clauses may name, each taken from the evidence of a night. Pure.

What nobody can know has the value None. A new figure is an entry in one of the three tables and a test.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from app.errors import ConfigError
from app.reports.clauses import deed_measures, log_measures, people_measures
from app.reports.clauses.clause import Measured
from app.reports.clauses.measuring import Measure
from app.reports.evidence.facts import Evidence

MEASURES: Mapping[str, Measure] = {**log_measures.MEASURES, **deed_measures.MEASURES, **people_measures.MEASURES}


_BESIDE_BODIES = frozenset(("anchors", "classes_below_six_months", "gaps_unexplained", "log_verdict"))
"""Figures that nothing in the bodies of the day's entries could change."""


def measure(evidence: Evidence, names: Iterable[str] = MEASURES) -> dict[str, Measured]:
    """The figures with these names, by default all. Raises ConfigError for a name that is none of MEASURES.

    Of a day of which bodies are gone nobody knows that something was not: no figure is 0 that counts what they said.
    """
    taken = {name: named(name).take(evidence) for name in names}
    if not evidence.purged:
        return taken
    return {name: replace(one, value=None) if _is_guess(name, one) else one for name, one in taken.items()}


def _is_guess(name: str, one: Measured) -> bool:
    return one.value == 0 and name not in _BESIDE_BODIES


def named(name: str) -> Measure:
    """The measure of this name. Raises ConfigError, which names those that are spelled like it."""
    found = MEASURES.get(name)
    if found is None:
        close = " or ".join(get_close_matches(name, MEASURES)) or "one of app/reports/clauses/measures.py"
        raise ConfigError(f"{name!r} is no measure", hint=f"Name {close}.")
    return found
