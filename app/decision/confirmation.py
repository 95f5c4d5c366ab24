"""What an admitted access still owes: obligations that only the gateway can meet, kept with the lease until it is settled."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from app.audit.records.access import RequestFacts
from app.policy.terms import Terms

MET_HERE = "audit"
"""Met by the entry itself, which is committed before the answer."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the entry will say once the gateway has met everything."""

    asked: RequestFacts
    retention_days: int | None
    owed: tuple[str, ...]
    """Codes of obligations."""

    def owed_after(self, codes: Collection[str]) -> tuple[str, ...]:
        """What is owed after a report that names `codes`: nothing where it names all of it, or more; else all, as the log keeps no part."""
        return () if set(codes).issuperset(self.owed) else self.owed

    def unknown(self, codes: Collection[str]) -> bool:
        """Whether `codes` name anything that the decision never obliged to."""
        return not set(codes).issubset((*self.owed, MET_HERE))

    def pack(self) -> bytes:
        """As the lease keeps it, which knows nothing of entries."""
        return orjson.dumps(asdict(self))

    @classmethod
    def unpack(cls, packed: bytes) -> "Confirmation":
        """What `pack` gave."""
        fields: dict[str, Any] = orjson.loads(packed)
        return cls(RequestFacts(**fields["asked"]), fields["retention_days"], tuple(fields["owed"]))


def owed_by_gateway(terms: Terms) -> tuple[str, ...]:
    """Codes of the obligations that only the gateway can meet."""
    return tuple(obligation.code for obligation in terms.obligations if obligation.code != MET_HERE)
