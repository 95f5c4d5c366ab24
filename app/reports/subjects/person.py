"""Whom a report is about: a subject of a tenant, somebody who operates, or a tenant that is itself a person. And which entries are theirs.

A tenant such as a sole trader is told what concerns the tenant as such; what concerns its subjects is theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from app.audit.people.pseudonyms import Pseudonyms
from app.audit.reading.proven import Search
from app.errors import BadRequest
from app.ids import identifier, tenant_id

Role = Literal["subject", "operator", "tenant"]


@dataclass(frozen=True, slots=True)
class Person:
    """One person, by the names that callers use, in NFC; equal ids are equal in every character."""

    role: Role
    tenant: str | None
    """None of those who operate."""
    name: str
    """The id of the subject, the name of the operator as entries have it, or the tenant once more."""

    @classmethod
    def of(cls, tenant: str | None, subject_id: str | None, operator: str | None) -> "Person":
        """The person that --tenant with --id, --tenant alone, or --operator name. Raises BadRequest."""
        if operator is not None and tenant is None and subject_id is None:
            return cls("operator", None, identifier(operator, "operator"))
        if operator is not None or tenant is None:
            raise BadRequest(
                "--tenant, --id, --operator: name one person",
                hint="Give --tenant T --id ID for a subject, --operator NAME for somebody who operates, "
                "or --tenant T alone where the tenant itself is a person.",
                field="tenant",
            )
        name = tenant_id(tenant)
        return cls("tenant", name, name) if subject_id is None else cls("subject", name, identifier(subject_id, "id"))

    def pseudonym(self, pseudonyms: Pseudonyms) -> str:
        """Under which the person stands in the log."""
        match self.role:
            case "operator":
                return pseudonyms.operator(self.name)
            case "tenant":
                return pseudonyms.tenant(self.name)
            case "subject":
                return pseudonyms.subject(self.tenant or "", self.name)

    def search(self, pseudonym: str) -> Search:
        """The entries about the person, and, of somebody who operates, those of what they did."""
        match self.role:
            case "subject":
                return Search("body.subject = :subject", {"subject": pseudonym}, lambda body: body.get("subject") == pseudonym)
            case "tenant":
                return Search(
                    "body.tenant = :tenant AND (body.subject IS NULL OR body.subject = :subject)",
                    {"tenant": self.name, "subject": pseudonym},
                    lambda body: body.get("tenant") == self.name and body.get("subject") in {None, pseudonym},
                )
            case "operator":
                return _search_operator(self.name, pseudonym)


def _search_operator(name: str, pseudonym: str) -> Search:
    """No column has who did something: bodies are searched for the name as they spell it, which canonical JSON does in one way only."""

    def says(body: Mapping[str, Any]) -> bool:
        return body.get("operator") == name or body.get("subject") == pseudonym or is_key_of(body, name)

    spelled = orjson.dumps(name)
    values = {"did": b'"operator":' + spelled, "called": b'"name":' + spelled, "subject": pseudonym}
    condition = "position(:did IN body.body) > 0 OR position(:called IN body.body) > 0 OR body.subject = :subject"
    return Search(condition, values, says, indexed=False)


def is_key_of(body: Mapping[str, Any], name: str) -> bool:
    """Whether an entry is about the API key that `name` presents."""
    states = [body.get(member) for member in ("before", "after")]
    return body.get("use") == "api" and any(isinstance(state, Mapping) and state.get("name") == name for state in states)
