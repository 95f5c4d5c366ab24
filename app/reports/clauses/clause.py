"""A clause of a law or standard: what it asks for, what in the log is evidence, and when it is met. Read from YAML, pure.

A verdict is never better than what was measured: what software cannot judge is for a person, and what is unknown is not met.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.reports.document import Words

Verdict = Literal["met", "partly", "not_met", "not_applicable", "manual"]
VERDICTS: Mapping[Verdict, Words] = {
    "met": Words("符合", "met"),
    "partly": Words("部分符合", "partly met"),
    "not_met": Words("不符合", "not met"),
    "not_applicable": Words("不适用", "not applicable"),
    "manual": Words("人工评估", "for a person to judge"),
}

PLACE = "{measure}"
"""What stands for the value that decided, in the words of a case."""


@dataclass(frozen=True, slots=True)
class Case:
    """`verdict`, where the measure is beyond the bound; the first case that holds decides."""

    verdict: Verdict
    measure: str
    """A name of app/reports/clauses/measures.py."""
    above: float | None = None
    below: float | None = None
    equals: float | None = None
    because: Words | None = None
    """PLACE in it stands for the value."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause as its YAML has it."""

    id: str
    standard: str
    """Such as GB/T 22239-2019."""
    number: str
    """Such as 8.1.4.3 a)."""
    title: Words
    requirement: Words
    source: str
    """Where the text can be read."""
    confirmed: bool
    """Whether the text and its reading were checked against the source; else the report says `to check`."""
    evidence: Sequence[str]
    """Names of measures, each printed with its value, its query and the numbers of its entries."""
    cases: Sequence[Case]
    otherwise: Verdict
    remark: Words | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure about a night."""

    value: float | None
    """None where nobody can know it."""
    query: str
    """What was counted, as an auditor can repeat it with GET /audit/entries or on the export."""
    entries: Sequence[int] = ()
    """Numbers of entries that show it, at most 20."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A clause and what was found."""

    clause: Clause
    verdict: Verdict
    because: Words
    measures: Mapping[str, Measured]
