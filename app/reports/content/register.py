"""The register of processing: GDPR Art. 30(1) and (2), and what PIPL Art. 55 asks to be assessed. Read from YAML, printed as it stands.

Sluice knows what itself keeps about people. Who is responsible, and what else happens to data, only the operator can say: in
`report.register_file`. What the file leaves open is printed as open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from app.audit.format.leaf import sm3
from app.errors import ConfigError
from app.fields import explain
from app.reports.clauses.loading import BothLanguages
from app.reports.document import Text
from app.yaml_file import read_yaml

FILE = Path(__file__).resolve().parents[3] / "reports" / "register.yaml"
"""The register that comes with Sluice: what Sluice does, with no operator named."""
_HINT = "docs/how-to/write-a-clause.md says what a register has; the one that comes with Sluice, reports/register.yaml, is a beginning."


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def _as_text(value: Any) -> Any:
    return value.isoformat() if type(value) is date else value  # YAML reads 2026-01-31 as a date


Day = Annotated[str, BeforeValidator(_as_text), Field(pattern=r"^\d{4}-\d\d-\d\d$")]


def _languages(value: Any) -> str:
    return "both" if isinstance(value, dict | BothLanguages) else "text"


Said = Annotated[
    Annotated[str, Field(min_length=1), Tag("text")] | Annotated[BothLanguages, Tag("both")],
    Discriminator(_languages),  # so that what is wrong is told of the one that was meant, and by no name of a class
]
"""In one language, or in both."""


def text_of(said: Said | None) -> Text | None:
    """As documents have it; None where it is left open."""
    return said.words() if isinstance(said, BothLanguages) else said


class Party(_Part):
    """Somebody with a name and a way to be reached."""

    name: Said | None = None
    contact: str | None = None


class Assessment(_Part):
    """An impact assessment (PIPL Art. 55 and 56, GDPR Art. 35)."""

    done: Day
    report: str
    """Where it can be read."""
    kept_until: Day
    """At least three years later (PIPL Art. 56)."""


class Activity(_Part):
    """One processing activity."""

    id: str = Field(min_length=1)
    name: Said
    role: Literal["controller", "processor"]
    on_behalf_of: Said | None = None
    """Of a processor: each controller (Art. 30(2)(a))."""
    purposes: Said
    people: Said | None = None
    data: Said | None = None
    recipients: Said | None = None
    transfers: Said | None = None
    """To third countries, and the safeguards."""
    retention: Said | None = None
    security: Said | None = None
    models: tuple[str, ...] = Field((), strict=False)
    """Ids of the models that are part of it."""
    automated: Said | None = None
    """Whether there is automated decision-making about people, and by what logic (Art. 15(1)(h), 22)."""
    pipl: tuple[Literal["sensitive", "automated", "entrusted", "provided", "published", "exported", "major"], ...] = Field((), strict=False)
    """Why PIPL Art. 55 asks for an assessment; none: it does not, by the operator's word."""
    assessment: Assessment | None = None
    since: Day | None = None
    """From when on it is as it stands."""

    @model_validator(mode="after")
    def _processor_has_one(self) -> Self:
        if self.role == "controller" and self.on_behalf_of is not None:
            raise ValueError("on_behalf_of is for processors")
        return self


class _File(_Part):
    version: str = Field(min_length=1)
    changed: Day
    controller: Party = Party()
    joint_controllers: tuple[Party, ...] = Field((), strict=False)
    representative: Party = Party()
    protection_officer: Party = Party()
    activities: tuple[Activity, ...] = Field(min_length=1, strict=False)

    @model_validator(mode="after")
    def _once(self) -> Self:
        ids = [activity.id for activity in self.activities]
        if twice := next((each for each in ids if ids.count(each) > 1), None):
            raise ValueError(f"activity {twice!r} stands twice")
        return self


@dataclass(frozen=True, slots=True)
class Register:
    """The register of one operator in one version."""

    version: str
    changed: str
    controller: Party
    joint_controllers: Sequence[Party]
    representative: Party
    protection_officer: Party
    activities: Sequence[Activity]
    sm3: str
    """Of the file, in hex."""

    def of_model(self, model: str) -> Activity | None:
        """The first activity that `model` is part of."""
        return next((activity for activity in self.activities if model in activity.models), None)


def load_register(path: Path | None = None) -> Register:
    """The register in `path`, None for the one that comes with Sluice. Raises ConfigError naming file and field."""
    document: Any = read_yaml(path or FILE, named_by="report.register_file" if path else "")
    path = path or FILE
    try:
        file = _File.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error)}", hint=_HINT) from None
    return Register(**{name: getattr(file, name) for name in _File.model_fields}, sm3=sm3(path.read_bytes()).hex())
