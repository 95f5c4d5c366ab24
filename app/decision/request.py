"""The request of a gateway, as it comes over the wire: token counts, never prompts. Unknown fields are ignored."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.auth.keys import Principal
from app.ids import identifier, model_id, plain_text, tenant_id, validator

MAX_TOKENS = 2**53 - 1
"""Counts above are refused, never rounded: 2^53 - 1 is what every JSON reader still holds exactly."""
MAX_BATCH = 256

Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
MAX_TEXT_CHARS = 128
DEFAULT_ACTION = "infer"


Text = Annotated[str, Field(min_length=1), AfterValidator(validator(partial(plain_text, field="text", most_chars=MAX_TEXT_CHARS)))]


class Subject(BaseModel):
    """The person or service behind the call, as the gateway knows it."""

    model_config = ConfigDict(strict=True, frozen=True, use_attribute_docstrings=True)

    id: Annotated[str, AfterValidator(validator(partial(identifier, field="subject.id")))] | None = None
    """Whose the buckets of kind `subject` are; the log has a pseudonym of it."""
    roles: Annotated[list[Text], Field(max_length=64)] = []
    """What rules read as subject.roles."""
    attributes: dict[str, Any] = {}
    """What rules read as subject.attributes."""


class DecideRequest(BaseModel):
    """`POST /decide`. Without `max_tokens` the model's default is reserved."""

    model_config = ConfigDict(strict=True, frozen=True, use_attribute_docstrings=True)

    tenant: Annotated[str, AfterValidator(validator(tenant_id))]
    """Whose quota it is."""
    model: Annotated[str, AfterValidator(validator(model_id))]
    """An id of models.yaml."""
    prompt_tokens: Tokens = 0
    """Tokens of the prompt, as the gateway counts or estimates them."""
    max_tokens: Tokens | None = None
    """Most tokens that one choice may generate."""
    action: Text = DEFAULT_ACTION
    """What is done with the model."""
    n: Annotated[int, Field(ge=1, le=128)] = 1
    """Choices asked for: each may take `max_tokens`."""
    priority: Literal["P0", "P1", "P2"] = "P1"
    """For rules to read; P0 is the most urgent."""
    stream: bool = False
    """For rules to read."""
    subject: Subject | None = None
    request_id: Text | None = None
    """Makes the call repeatable: an admitted request is answered again, charged once."""
    approval_id: Text | None = None
    """Of an approval that this request rests on, where the model needs one."""
    purpose: Text | None = None
    """For rules to read, and kept in the log: sealed, unless the model's spec declares it."""
    node: Text | None = None
    """The node the gateway has already chosen; kept where it is live, else another is named."""


class SettleRequest(BaseModel):
    """`POST /leases/{id}/settle`: what the call really took. A count that is left out keeps the reserved figure."""

    model_config = ConfigDict(strict=True, frozen=True, use_attribute_docstrings=True)

    prompt_tokens: Tokens | None = None
    """Tokens of the prompt, cached ones included."""
    completion_tokens: Tokens | None = None
    """Tokens generated, over all choices."""
    cached_tokens: Annotated[int, Field(ge=-MAX_TOKENS, le=MAX_TOKENS)] = 0
    """Prompt tokens that the engine had in its cache; an impossible figure counts as 0 and is flagged."""
    outcome: Literal["completed", "aborted", "failed", "timeout"] = "completed"
    """How the call ended."""
    ttft_ms: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)] | None = None
    """Milliseconds to the first token; checked, and so far not used."""
    e2e_ms: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)] | None = None
    """Milliseconds of the whole call; checked, and so far not used."""
    obligations_met: list[Text] | None = None
    """Codes of the obligations that the gateway met: once one report covers all of its decision but `audit`, the log says so. A lease that ends before is an incident."""


class RenewRequest(BaseModel):
    """`POST /leases/{id}/renew`: a new life from now on; without `ttl_ms` the default one."""

    model_config = ConfigDict(strict=True, frozen=True, use_attribute_docstrings=True)

    ttl_ms: Annotated[int, Field(ge=1000, le=3_600_000)] | None = None
    """Milliseconds from now."""


@dataclass(frozen=True, slots=True)
class Asking:
    """One request with who asks, and with the request id's key where there is one."""

    request: DecideRequest
    caller: Principal
    key: tuple[str, ...] | None = None
    digest: bytes = b""
    peer: str | None = None
    """Address of the caller's end of the connection."""
