"""Who may read the log and what is made of it, and that it is recorded who was refused."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Depends

from app.audit.reading.refusals import Refusals
from app.auth.keys import Principal
from app.errors import Forbidden


class Readers:
    """The dependencies that give the name of a caller who may read, and raise Forbidden for all others."""

    def __init__(self, principal: Callable[..., Any], refusals: Refusals) -> None:
        def unrecorded(caller: Annotated[Principal, Depends(principal)]) -> str:
            caller.require("auditor", "admin")
            return caller.name

        self.unrecorded = unrecorded
        self._principal = principal
        self._refusals = refusals

    def of(self, read: str, asked: Callable[..., Mapping[str, Any]]) -> Callable[..., str]:
        """For `read`: who is refused is told to the log, with what the dependency `asked` gives of the call."""

        def recorded(caller: Annotated[Principal, Depends(self._principal)], what: Annotated[Mapping[str, Any], Depends(asked)]) -> str:
            try:
                return self.unrecorded(caller)
            except Forbidden:
                self._refusals.add(read, operator=caller.name, **what)
                raise

        return recorded
