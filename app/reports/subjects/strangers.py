"""What speaks against a person or a tenant being known here. Who is mistyped is found nowhere, and the answer would be that nothing is held.

Only ever a warning: somebody of whom nothing is held may ask as well.

When down: DatabaseDown, DependencyDown.
"""

from app.audit.people.people import People
from app.ids import tenant_id
from app.reports.subjects.outside import Outside
from app.reports.subjects.person import Person

_LETTER_BY_LETTER = "; names and ids are taken letter by letter: Bea is not bea"


async def no_tenant(tenant: str | None, outside: Outside) -> str | None:
    """The warning where `tenant` is one that never had a quota; None where it had one, or where none is named.

    Raises BadRequest for what is no tenant's name, DatabaseDown.
    """
    if tenant is None or await outside.has_tenant(tenant_id(tenant)):
        return None
    return f"no tenant {tenant!r} ever had a quota here"


async def stranger(person: Person, people: People, outside: Outside) -> str | None:
    """The warning where neither a key nor the registry has `person`; ask before a key is made for them. Raises DependencyDown.

    Of those who operate this finds who wrote, asked for or changed something; whoever only looked is in entries alone.
    """
    if warning := await no_tenant(person.tenant, outside):
        return warning
    subject = person.pseudonym(people.pseudonyms)
    if await people.keys.kept(subject) is not None or any((await outside.held(person, subject)).values()):
        return None
    return f"nobody is known here as {person.name!r} so far{_LETTER_BY_LETTER}"


def nothing_held(person: Person, met: int) -> str | None:
    """The warning about a report that tells of nothing but that somebody asked (`Given.met` is 0)."""
    return None if met else f"the log has nothing of {person.name!r} but that somebody asked{_LETTER_BY_LETTER}"
