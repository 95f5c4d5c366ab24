"""A tenant's quota as a value: parsed strictly, kept exactly, shown to rules, and recorded.

Three forms: `Quota` inside (decimals and integers), `facts` for rules and answers (plain numbers), `record` for history
and log (decimals as text, user-chosen names as values). Missing is absent in all of them.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, field_validator, model_validator
from pydantic_core import ErrorDetails

from app.audit.records.entry import decimal_text
from app.errors import BadRequest
from app.fields import bad_field
from app.ids import model_id, validator

MAX_QPS = 1_000_000
MAX_TPM = 1_000_000_000
MAX_CONCURRENCY = 1_000_000
MAX_FACTOR = 1000  # of a rate factor and of a cost: the catalogue's own bound of a model's cost
DECIMAL_PLACES = 6  # one request in eleven days is slow enough
MAX_MODELS = 256  # entries of rate_factors and of costs; they travel in every question

DEFAULT_SLA_CLASS = "standard"
DEFAULT_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Quota:
    """What one tenant may spend. A dimension that is None is not limited; at least one is named."""

    qps: Decimal | None = None
    """Requests per second."""
    tpm: int | None = None
    """Weighted tokens per minute."""
    concurrency: int | None = None
    """Requests at once."""
    rate_factors: Mapping[str, Decimal] = field(default_factory=dict)
    """By model: multiplies the tenant's QPS limit for it (B5)."""
    costs: Mapping[str, Decimal] = field(default_factory=dict)
    """By model: what one call spends, in place of the model's own cost (B2, last column)."""
    sla_class: str = DEFAULT_SLA_CLASS
    region: str = ""
    zone: str = DEFAULT_ZONE
    """IANA name of the zone whose hours rules compare with."""

    def facts(self) -> dict[str, Any]:
        """As rules read it and the API answers it: plain numbers, what is not set is absent."""
        numbers = {"qps": None if self.qps is None else _plain(self.qps), "tpm": self.tpm, "concurrency": self.concurrency}
        maps = {name: {model: _plain(number) for model, number in getattr(self, name).items()} for name in ("rate_factors", "costs")}
        names = {"sla_class": self.sla_class, "region": self.region, "zone": self.zone}
        return {name: value for name, value in (numbers | maps | names).items() if value not in (None, {}, "")}

    def record(self) -> dict[str, Any]:
        """As history and log keep it: exact, and with model ids as values, since the canonical form has ASCII keys only."""
        lists = {
            name: [{"model": model, "value": decimal_text(number)} for model, number in sorted(getattr(self, name).items())]
            for name in ("rate_factors", "costs")
        }
        qps = None if self.qps is None else decimal_text(self.qps)
        return {name: value for name, value in (self.facts() | {"qps": qps} | lists).items() if value not in (None, [])}


def decimals(numbers: Mapping[str, str]) -> dict[str, Decimal]:
    """Numbers kept as text, exact again."""
    return {name: Decimal(number) for name, number in numbers.items()}


def _plain(number: Decimal) -> int | float:
    """The JSON number. Exact in both directions: at most 13 digits, where a double keeps 15."""
    return int(number) if number == number.to_integral_value() else float(number)


def _decimal(value: object) -> object:
    """JSON numbers as decimals; the shortest text of a double is the text it was parsed from (see app/api/strict_json.py)."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("must be a number")  # noqa: TRY004 - what pydantic turns into a field error
    return Decimal(str(value))


def _name(value: object) -> object:
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


_model_id = validator(model_id)


def _number(most: int) -> WithJsonSchema:
    """In JSON a number, which pydantic by itself would describe as text too."""
    return WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": most})


Qps = Annotated[Decimal, BeforeValidator(_decimal), Field(gt=0, le=MAX_QPS, decimal_places=DECIMAL_PLACES), _number(MAX_QPS)]
Factor = Annotated[Decimal, BeforeValidator(_decimal), Field(gt=0, le=MAX_FACTOR, decimal_places=DECIMAL_PLACES), _number(MAX_FACTOR)]
Label = Annotated[str, BeforeValidator(_name), Field(max_length=128, pattern=r"^[^\x00-\x20\x7f-\xa0]*$")]


class QuotaBody(BaseModel):
    """A quota as it comes in: numbers are numbers, unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    qps: Qps | None = None
    """Requests per second."""
    tpm: int | None = Field(None, ge=1, le=MAX_TPM)
    """Weighted tokens per minute."""
    concurrency: int | None = Field(None, ge=1, le=MAX_CONCURRENCY)
    """Requests at once."""
    rate_factors: dict[str, Factor] = Field(default_factory=dict, max_length=MAX_MODELS)
    """By model: multiplies the tenant's QPS limit for it (B5)."""
    costs: dict[str, Factor] = Field(default_factory=dict, max_length=MAX_MODELS)
    """By model: what one call spends, in place of the model's own cost (B2, last column)."""
    sla_class: Label = Field(DEFAULT_SLA_CLASS, min_length=1)
    """For rules to read, and a label of metrics."""
    region: Label = ""
    """For rules to read, and a label of metrics."""
    zone: str = DEFAULT_ZONE
    """IANA name of the zone whose hours rules compare with."""

    @field_validator("rate_factors", "costs")
    @classmethod
    def _model_ids(cls, numbers: dict[str, Decimal]) -> dict[str, Decimal]:
        named = {_model_id(model): number for model, number in numbers.items()}
        if len(named) < len(numbers):
            raise ValueError("names one model twice, composed and decomposed")
        return named

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        time_zone(name)
        return name

    @model_validator(mode="after")
    def _limits_something(self) -> "QuotaBody":
        if self.qps is None and self.tpm is None and self.concurrency is None:
            raise ValueError("name at least one of qps, tpm, concurrency")
        return self


def time_zone(name: str) -> tzinfo:
    """The zone with this IANA name. Raises ValueError."""
    if name == "UTC":
        return UTC  # known even where the machine has no zone files
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("not an IANA time zone such as Europe/Berlin") from None


def parse_quota(document: object) -> Quota:
    """The quota that a JSON document says. Raises BadRequest naming the first wrong field and what it should be."""
    if not isinstance(document, Mapping):
        raise BadRequest("the quota must be a JSON object")
    try:
        body = QuotaBody.model_validate(dict(document))
    except ValidationError as error:
        raise _wrong(error.errors()[0]) from None
    return Quota(**{name: getattr(body, name) for name in QuotaBody.model_fields})


def _wrong(error: ErrorDetails) -> BadRequest:
    wrong = bad_field(error)
    if error["type"] != "extra_forbidden":
        return wrong
    close = get_close_matches(wrong.field or "", QuotaBody.model_fields, n=1)
    hint = f"Did you mean `{close[0]}`?" if close else f"A quota has {', '.join(QuotaBody.model_fields)}."
    return BadRequest(f"{wrong.field}: unknown field", hint=hint, field=wrong.field)


def merge(target: Any, patch: Any) -> Any:
    """`target` after the JSON merge patch `patch` (RFC 7396): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two quotas: a JSON pointer into the facts, and the values there in recorded form."""

    path: str
    before: str | int | None
    after: str | int | None

    def record(self) -> dict[str, Any]:
        """As history and log keep it; the side that has no value is absent."""
        sides = {"before": self.before, "after": self.after}
        return {"path": self.path} | {side: value for side, value in sides.items() if value is not None}


def diff(before: Quota | None, after: Quota | None) -> tuple[Change, ...]:
    """All differences, by path. None stands for no quota at all."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return tuple(Change(path, old.get(path), new.get(path)) for path in sorted(old | new) if old.get(path) != new.get(path))


def _leaves(quota: Quota | None) -> Iterator[tuple[str, str | int]]:
    for name, value in quota.record().items() if quota else ():
        if isinstance(value, list):
            for item in value:
                yield f"/{name}/{item['model'].replace('~', '~0').replace('/', '~1')}", item["value"]
        else:
            yield f"/{name}", value
