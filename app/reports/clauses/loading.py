"""Clauses from YAML: every *.yaml in a folder, each with the report that it belongs to. A new clause is an entry there, and no code.

Read once, when a report is made; what is wrong with a file is told with its name and the field, and no report is made of the rest.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from app.audit.format.leaf import sm3
from app.errors import ConfigError
from app.fields import explain_each
from app.reports.clauses.clause import PLACE, Case, Clause, Verdict
from app.reports.document import Words
from app.yaml_file import read_yaml

FOLDER = Path(__file__).resolve().parents[3] / "reports" / "clauses"
"""The clauses that come with Sluice."""

_HINT = "docs/how-to/write-a-clause.md says what a clause has, and how to check a file."

ReportName = Literal["mlps", "gdpr"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)  # beyond no number is never


_BRACE = re.compile(r"\{[^}]*\}?|\}")


class BothLanguages(_Part):
    """`zh` and `en`, neither empty."""

    zh: str = Field(min_length=1)
    en: str = Field(min_length=1)

    def words(self) -> Words:
        """The same as documents have it."""
        return Words(self.zh, self.en)


class _Case(_Part):
    verdict: Verdict
    measure: str
    above: float | None = None
    below: float | None = None
    equals: float | None = None
    because: BothLanguages | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.above is self.below is self.equals is None:
            raise ValueError("needs one of above, below, equals")
        return self

    @model_validator(mode="after")
    def _knows_its_braces(self) -> Self:
        """A slip would be printed, and signed, as it stands."""
        if self.because and (wrong := _BRACE.search(f"{self.because.zh} {self.because.en}".replace(PLACE, ""))):
            raise ValueError(f"because: {wrong[0]} stands for nothing; only {PLACE} does, for the value")
        return self

    def case(self) -> Case:
        return Case(self.verdict, self.measure, self.above, self.below, self.equals, _words(self.because))


class _Clause(_Part):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=60)
    standard: str = Field(min_length=1)
    number: str = Field(min_length=1)
    title: BothLanguages
    requirement: BothLanguages
    source: str = Field(min_length=1)
    confirmed: bool
    evidence: list[str] = []
    cases: list[_Case] = []
    otherwise: Verdict
    remark: BothLanguages | None = None

    @model_validator(mode="after")
    def _judged_by_something(self) -> Self:
        if self.otherwise == "met" and not self.cases:
            raise ValueError("otherwise: met needs a case: nothing would have been measured")
        return self

    @model_validator(mode="after")
    def _has_no_braces(self) -> Self:
        for name in ("title", "requirement", "remark"):
            said = getattr(self, name)
            if said and (wrong := _BRACE.search(f"{said.zh} {said.en}")):
                raise ValueError(f"{name}: {wrong[0]} stands for nothing here; only `because` of a case has a value")
        return self

    def clause(self) -> Clause:
        return Clause(
            id=self.id,
            standard=self.standard,
            number=self.number,
            title=self.title.words(),
            requirement=self.requirement.words(),
            source=self.source,
            confirmed=self.confirmed,
            evidence=tuple(self.evidence),
            cases=tuple(case.case() for case in self.cases),
            otherwise=self.otherwise,
            remark=_words(self.remark),
        )


class _File(_Part):
    report: ReportName
    clauses: list[_Clause] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Clauses:
    """What the reports judge, in the order of the files' names and then of the files."""

    mlps: Sequence[Clause]
    gdpr: Sequence[Clause]
    sm3: str
    """Over the files, each with its name, in hex: which clauses a report was made with."""


def load_clauses(known: Collection[str], folder: Path | None = None) -> Clauses:
    """The clauses of `folder`, None for those that come with Sluice; `known` are the names of all measures.

    Raises ConfigError naming file and field: no file at all, a measure that nobody takes, an id that stands twice, a wrong form.
    """
    folder = folder or FOLDER
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        problem = "no clauses in *.yaml" if folder.is_dir() else "no such folder"
        raise ConfigError(
            f"report.clauses: {folder}: {problem}", hint="Name a folder of clauses, or leave it empty.", field="report.clauses"
        )
    found: dict[ReportName, list[Clause]] = {"mlps": [], "gdpr": []}
    places: dict[str, Path] = {}
    for path in paths:
        file = _read(path)
        for index, clause in enumerate(each.clause() for each in file.clauses):
            _check(clause, f"{path}: {_place(index, clause.id)}", known, places)
            places[clause.id] = path
            found[file.report].append(clause)
    return Clauses(tuple(found["mlps"]), tuple(found["gdpr"]), _fingerprint(paths))


def _read(path: Path) -> _File:
    document: Any = read_yaml(path, named_by="report.clauses")
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: the file must have `report` and `clauses`", hint=_HINT)
    try:
        return _File.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain_each(_with_id(detail, document) for detail in error.errors())}", hint=_HINT) from None


def _with_id(detail: ErrorDetails, document: Mapping[str, Any]) -> ErrorDetails:
    """The same, with the id of the clause that it is about: a place in a list has to be counted out."""
    match detail["loc"]:
        case ("clauses", int(index), *field) if isinstance(clause := document["clauses"][index], dict):
            detail["loc"] = (_place(index, clause.get("id")), *field)
    return detail


def _place(index: int, name: Any) -> str:
    return f"clauses[{index}]" + (f" ({name})" if isinstance(name, str) else "")


def _check(clause: Clause, place: str, known: Collection[str], places: dict[str, Path]) -> None:
    if clause.id in places:
        raise ConfigError(f"{place}.id: {clause.id!r} stands in {places[clause.id].name} already", hint=_HINT)
    named = [*((name, "evidence") for name in clause.evidence), *((case.measure, "cases") for case in clause.cases)]
    for name, field in named:
        if name not in known:
            raise ConfigError(f"{place}.{field}: no measure is called {name!r}", hint=f"Measures are {', '.join(sorted(known))}.")


def _words(both: BothLanguages | None) -> Words | None:
    return both.words() if both else None


def _fingerprint(paths: Sequence[Path]) -> str:
    """Two readers of the same files get the same: name, length and text of each, so that nothing can move from one into the next."""
    parts = [(path.name, path.read_bytes()) for path in paths]
    return sm3(b"".join(f"{name} {len(text)}\n".encode() + text for name, text in parts)).hex()
