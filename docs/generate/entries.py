"""docs/reference/log-entries.md, from the table of kinds."""

from collections.abc import Iterable

from app.audit.records.entry import DEFAULT_RETENTION_DAYS, ENVELOPE_VERSION, MAX_BODY_BYTES, MAX_INTEGER
from app.audit.records.kinds import ENVELOPE, KINDS, MEMBERS
from docs.generate.markdown import code, page, table

INTRO = f"""
Every entry of the log is one JSON object in canonical form (RFC 8785): keys sorted, no spaces, no null but an absent tenant and
what a state holds as empty, no fractions. Decimal numbers are text in plain notation, whole numbers are at most {MAX_INTEGER}
either way, keys are ASCII, and an entry has at most {MAX_BODY_BYTES // 1024} KiB. What is not so is refused where it is written.

This is version {ENVELOPE_VERSION} of the envelope. A kind may get more optional members without a new version, so a reader passes over what it does
not know. An entry is kept for {DEFAULT_RETENTION_DAYS} days unless a rule or a model's spec asks for longer.
"""

SEALED = """
## Sealed texts

`sealed` holds texts by the member that each would stand in: `s1:KEY:BASE64`. KEY is the id of the key in `registry.subject_key`;
BASE64 is a nonce of 12 bytes, then the ciphertext and tag of AES-256-GCM, whose additional data are the entry's `id` (36
characters) followed by the member's name. A text therefore opens in its own entry and member alone, and not at all once its
person's key is destroyed.
"""


def entries_page() -> str:
    """The envelope, every kind with its members, and what each member says."""
    kinds = [
        (code(name), kind.says, _codes(kind.outcomes), _codes(sorted(kind.required)), _codes(sorted(kind.optional)))
        for name, kind in KINDS.items()
    ]
    return page(
        "Entries of the log",
        INTRO.strip(),
        "## Envelope",
        table(("member", "what it says"), [(code(name), says) for name, says in ENVELOPE.items()]),
        "## Kinds",
        table(("kind", "what happened", "outcome", "members", "where it applies"), kinds),
        "## Members",
        table(("member", "what it says"), [(code(name), says) for name, says in MEMBERS.items()]),
        SEALED.strip(),
    )


def _codes(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)
