"""What a report says of itself: who made it, when, of what, with which versions. Handed in by whoever makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Imprint:
    """Beside the evidence, all that differs between two makings of the same night."""

    report: str
    """Its id: Night.name, a dash and a number."""
    made: str
    """RFC 3339."""
    made_by: str
    """As the log names operators: `cli:` and a user, or `sluice`."""
    root: str
    """SM3 fingerprint of the root certificate of the report keys, in hex: what a reader compares."""
    organization: str = ""
    """Empty: nobody named it, and the cover says so."""
    system: str = ""
    pades: bool = False
    """Whether the PDFs have an ECDSA signature for ordinary readers, too."""
    timestamp: bool = False
    """Whether an RFC 3161 token lies beside."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """By what: `sluice`, `policy` (revisions in force), `clauses` and `register` (SM3, hex), `font`; printed in this order, then others."""
