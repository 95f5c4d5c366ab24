"""Model specs from models.yaml: what a call costs, how the cache is shaped, which signals to expect, what is sensitive."""

import unicodedata
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from app.errors import ConfigError
from app.fields import explain
from app.yaml_file import read_yaml

Signal = Literal["kv", "waiting", "running"]


class Hours(BaseModel):
    """Hours of the tenant's day in which access is open: `from` inclusive, `to` exclusive, 0..24."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True, use_attribute_docstrings=True)

    start: int = Field(alias="from", ge=0, le=23)
    end: int = Field(alias="to", ge=1, le=24)

    @model_validator(mode="after")
    def _some_hours(self) -> Self:
        if self.start == self.end:
            raise ValueError("from and to are the same hour, which could mean never or always; write from: 0, to: 24 for always")
        return self


class Sensitive(BaseModel):
    """Who may use a sensitive model (B16); an attribute that is not named is not asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    actions: tuple[str, ...] = ("infer",)
    """Actions it is open for."""
    roles: tuple[str, ...] = Field(min_length=1)
    """One of these must be among the subject's roles."""
    purposes: tuple[str, ...] = ()
    """The request must state one of these."""
    regions: tuple[str, ...] = ()
    """The tenant's region must be one of these, and the subject's too where the gateway tells it."""
    hours: Hours | None = None
    """When it is open, in the tenant's zone."""
    clearance: int | None = Field(None, ge=0)
    """The subject's attribute `clearance` must be at least this."""
    mask: tuple[str, ...] = ()
    """Fields that the gateway must mask: they come back as an obligation."""
    approval: bool = False
    """Whether a request must rest on an approval of its model, action, purpose and subject."""
    retention_days: int = Field(ge=184, le=3660)
    """How long the log keeps each access."""


class ModelSpec(BaseModel):
    """One model. Unknown fields are refused, so that a misspelt limit is never silently absent."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    id: str = Field(min_length=1, max_length=128)
    """What requests name it."""
    cost: float = Field(1.0, gt=0, le=1000)
    """What one call spends of QPS and TPM (B2)."""
    cached_weight: float = Field(1.0, ge=0, le=1)
    """What a cached prompt token costs of an uncached one."""
    default_max_tokens: int = Field(512, ge=1, le=10_000_000)
    """Output tokens reserved for a request that names none."""
    signals: tuple[Signal, ...] = ("kv", "waiting")
    """What its engines tell; a page without one of these does not count as fresh."""
    preallocates: bool = True
    """Whether the engine takes all device memory at its start, so that only KV usage tells its load."""
    layers: int | None = Field(None, ge=1)
    """Layers that have a KV cache."""
    kv_heads: int | None = Field(None, ge=1)
    """Heads of the KV cache, not of attention."""
    head_dim: int | None = Field(None, ge=1)
    """Numbers in one head."""
    kv_bytes: float | None = Field(None, gt=0)
    """Bytes of one number in the cache: 2 for FP16, 1 for FP8."""
    kv_tokens: int | None = Field(None, ge=1)
    """Tokens that the KV cache of one engine holds, where neither its page nor the shape above can tell."""
    sensitive: Sensitive | None = None
    """Present: the model is sensitive, and this says who may use it."""

    @field_validator("id")
    @classmethod
    def _nfc(cls, value: str) -> str:
        return unicodedata.normalize("NFC", value)

    def facts(self) -> dict[str, Any]:
        """What rules read of it: no nulls, since missing is absent."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"default_max_tokens"})


_SPECS = TypeAdapter(tuple[ModelSpec, ...])
_HINT = "docs/how-to/connect-engines.md says what a model spec has."


def load_models(path: Path) -> dict[str, ModelSpec]:
    """Model specs by id. Raises ConfigError naming file and field: an empty list is refused, a half-written file too."""
    document = read_yaml(path, named_by="models")
    try:
        specs = _SPECS.validate_python(document)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error)}", hint=_HINT) from None
    if not specs:
        raise ConfigError(f"{path}: no models; an empty file is taken for a write in progress, not for a wish", hint=_HINT)
    models = {spec.id: spec for spec in specs}
    if len(models) != len(specs):
        twice = next(spec.id for spec in specs if sum(other.id == spec.id for other in specs) > 1)
        raise ConfigError(f"{path}: model {twice!r} stands twice", hint=_HINT)
    return models
