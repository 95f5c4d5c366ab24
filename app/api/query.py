"""Query parameters that a route does not have are refused: a filter with a typo in its name would answer everything."""

from collections.abc import Iterator
from typing import get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.errors import BadRequest

_MOST_NAME_CHARS = 40  # the caller chose it


async def known_query(request: Request) -> None:
    """As a dependency of a router: raise BadRequest for a parameter that its route does not have, or has once and was given twice."""
    route: APIRoute = request.scope["route"]
    parameters = dict(_parameters(route.dependant))
    for name in request.query_params:
        if name not in parameters:
            known = ", ".join(sorted(parameters)) or "none"
            shown = name[:_MOST_NAME_CHARS]
            raise BadRequest(f"{shown}: no query parameter of this route", hint=f"Parameters here: {known}.", field=shown)
        if not parameters[name] and len(request.query_params.getlist(name)) > 1:
            raise BadRequest(f"{name}: given more than once", hint="Give it once; each of several values is a call of its own.", field=name)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Each query parameter of a route and of what it depends on, and whether it may be repeated."""
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        yield parameter.alias, any(get_origin(one) is list for one in (annotation, *get_args(annotation)))
    for below in dependant.dependencies:
        yield from _parameters(below)
