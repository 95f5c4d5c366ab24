"""What somebody asks an approval for: checked against the model's spec, so that none is asked for that could never open it."""

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from app.catalog.models import ModelSpec
from app.errors import BadRequest
from app.ids import identifier, model_id, tenant_id, validator, words
from app.instants import instant

MAX_REASON_CHARS = 2000
"""A paragraph; an approver reads it."""
LONGEST = timedelta(days=366)
"""An approval that nobody looks at again for longer is no approval."""
MAX_TEXT_CHARS = 128

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)]
Reason = Annotated[
    str,
    Field(min_length=1, max_length=MAX_REASON_CHARS, description="why, in words; sealed in the log"),
    AfterValidator(validator(partial(words, field="reason", most_chars=MAX_REASON_CHARS))),
]


class Wish(BaseModel):
    """`POST /approvals`: for one action of one model, for one subject or for everyone of the tenant."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    tenant: Annotated[str, AfterValidator(validator(tenant_id))]
    """Whose requests it is for."""
    model: Annotated[str, AfterValidator(validator(model_id))]
    """A sensitive model of models.yaml."""
    action: Text
    """One that the model's spec declares."""
    purpose: Text | None = None
    """One that the model's spec declares; needed where it declares any."""
    subject_id: Annotated[str, AfterValidator(validator(partial(identifier, field="subject_id")))] | None = None
    """Who it is for, as requests name them in subject.id; kept as a pseudonym, and sealed in the log."""
    everyone: bool = False
    """In place of subject_id: every subject of the tenant, and requests that name none."""
    expires: Annotated[str, Field(min_length=1, max_length=64)]
    """When it ends: RFC 3339, in the future, at most 366 days away."""
    reason: Reason

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if self.everyone == (self.subject_id is not None):
            raise ValueError("name either subject_id or everyone: true")
        return self

    def end(self, now: datetime) -> datetime:
        """When it expires. Raises BadRequest where that is past or too far away."""
        end = instant(self.expires, "expires")
        if not now < end <= now + LONGEST:
            raise BadRequest(f"expires: must be in the future and at most {LONGEST.days} days away", field="expires")
        return end

    def check(self, spec: ModelSpec | None) -> None:
        """Raises BadRequest naming the field that the model's spec does not have so."""
        if spec is None or spec.sensitive is None:
            raise BadRequest(f"model: {self.model!r} is no sensitive model of models.yaml, so no approval opens it", field="model")
        rules = spec.sensitive
        if self.action not in rules.actions:
            raise BadRequest(f"action: the model is open for {', '.join(rules.actions)} alone", field="action")
        if rules.purposes and self.purpose not in rules.purposes:
            raise BadRequest(f"purpose: must be one of {', '.join(rules.purposes)}", field="purpose")
        if not rules.purposes and self.purpose is not None:
            raise BadRequest("purpose: the model's spec declares none, so leave it out", field="purpose")


class Answer(BaseModel):
    """The body of approve, refuse and revoke."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reason: Reason
