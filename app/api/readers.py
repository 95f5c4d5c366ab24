"""Who may read the log, what is made of it and what it tells of, and that it is recorded who was refused."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends

from app.audit.reading.refusals import Refusals
from app.auth.keys import Principal, Role
from app.errors import Forbidden


class Readers:
    """The dependencies that give a caller who may, and raise Forbidden for all others."""

    def __init__(self, principal: Callable[..., Any], refusals: Refusals) -> None:
        def unrecorded(caller: Annotated[Principal, Depends(principal)]) -> str:
            caller.require("auditor", "admin")
            return caller.name

        self.unrecorded = unrecorded
        self._principal = principal
        self._refusals = refusals

    def of(self, read: str, asked: Callable[..., Mapping[str, Any]]) -> Callable[..., str]:
        """The name of an auditor or admin, for `read`: who is refused is told to the log, with what the dependency `asked` gives."""
        caller = self.with_role(read, asked, "auditor", "admin")

        def named(who: Annotated[Principal, Depends(caller)]) -> str:
            return who.name

        return named

    def with_role(self, read: str, asked: Callable[..., Mapping[str, Any]], *roles: Role) -> Callable[..., Principal]:
        """A caller with one of `roles`, refused as `of` refuses."""

        def recorded(
            caller: Annotated[Principal, Depends(self._principal)], what: Annotated[Mapping[str, Any], Depends(asked)]
        ) -> Principal:
            with self.telling(read, caller, what):
                caller.require(*roles)
            return caller

        return recorded

    @contextmanager
    def telling(self, read: str, caller: Principal, what: Mapping[str, Any]) -> Iterator[None]:
        """Where the block refuses the caller, that is told to the log: `what` is as Refusals.add takes it."""
        try:
            yield
        except Forbidden:
            self._refusals.add(read, operator=caller.name, **what)
            raise
