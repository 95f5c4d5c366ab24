"""Whether an entry has what an audit record must have. Pure.

That is by GB/T 22239-2019 8.1.4.3 b): date and time, user, kind of event, how it ended, and what else belongs to its kind.
"""

import functools

from app.audit.records import kinds
from app.audit.records.kinds import ENVELOPE
from app.reports.evidence.facts import Logged


def is_complete(entry: Logged) -> bool:
    """Whether it has all five. Its time is there and right, or it would not be an entry of a log that verifies.

    Of a kind that this version does not know the rest cannot be judged: it must have something beside the envelope.
    """
    body = entry.body
    if not _text(body.get("operator")) or not _text(body.get("outcome")):
        return False
    return _has_members(entry.kind, entry.outcome, frozenset(body))


@functools.lru_cache(maxsize=1024)
def _has_members(kind: str, outcome: str, names: frozenset[str]) -> bool:
    """The same of all entries with these names of members: a log has few such sets."""
    members = names - ENVELOPE.keys()
    if kind not in kinds.KINDS:
        return bool(members)
    try:
        kinds.check(kind, outcome, members)
    except ValueError:
        return False
    return True


_TEXTS = frozenset(("approval_id", "article", "at", "breach", "expires", "from", "legal_basis", "model", "request", "subject", "whom"))


def is_readable(entry: Logged) -> bool:
    """Whether it is complete, and texts are what the registers and approvals read of it: of whatever else they would be misled.

    A tenant is there, and may be null; of the others one that is there is text.
    """
    body = entry.body
    if "tenant" not in body or not isinstance(body["tenant"], str | None):
        return False
    return is_complete(entry) and all(isinstance(body.get(name, ""), str) for name in _TEXTS)


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
