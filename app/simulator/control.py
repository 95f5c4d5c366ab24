"""The stand-in's control of its batch: the one setting that a running engine takes."""

from dataclasses import dataclass
from typing import Any

from app.simulator import fields

MOST_NUM_SEQS = 1_000_000


@dataclass(frozen=True, slots=True)
class Control:
    """Most sequences in the batch from the next step on. Those beyond it run to their end; none is admitted until there is a place."""

    max_num_seqs: int

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Control":
        """From a JSON body. Raises ValueError naming the field."""
        fields.only(("max_num_seqs",), document)
        return cls(fields.whole(document, "max_num_seqs", MOST_NUM_SEQS))
