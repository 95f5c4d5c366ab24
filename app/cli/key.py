"""`sluice key`: make, list and revoke the keys that callers of the API present."""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, print_table, quiet_settings_of
from app.errors import BadRequest

if TYPE_CHECKING:
    from app.auth.keys import CreatedKey, Key, Keys
    from app.quota.registry import Tenants

T = TypeVar("T")

app = typer.Typer(help="Keys of gateways, operators, auditors.", no_args_is_help=True)

_LIFE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@app.command()
def create(
    *,
    name: Annotated[str, typer.Option(help="what the key is called in logs and lists; one key in force has it")],
    role: Annotated[list[str], typer.Option(help="gateway, operator, approver, auditor or admin; may be repeated")],
    tenant: Annotated[list[str] | None, typer.Option(help="a tenant that a gateway may speak for, or * for all; may be repeated")] = None,
    expires: Annotated[str | None, typer.Option(help="life of the key, such as 12h, 90d, 4w; without it the key does not expire")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Make a key and print it, once: only its digest is kept."""
    from urllib.parse import quote

    from app.clock import SystemClock
    from app.ids import ANY_TENANT

    end = SystemClock().utcnow() + _life(expires) if expires else None

    async def make(keys: "Keys", tenants: "Tenants") -> "tuple[CreatedKey, list[str]]":
        made = await keys.create(name=name, roles=role, tenants=tenant or (), expires=end, operator=operator())
        await tenants.load()
        return made, sorted(one for one in made.key.principal.tenants if one != ANY_TENANT and tenants.tenant(one) is None)

    created, unknown = _with_database(make, var, config, overrides)
    typer.echo(created.text)
    typer.echo(f"key {name} has id {created.key.id}; this is the only time that it is shown", err=True)
    for one in unknown:
        typer.echo(
            f"warning: tenant {one!r} does not exist; calls for it are refused until PUT /quotas/{quote(one, safe='')} makes it", err=True
        )


@app.command("list")
def list_(
    *,
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List all keys, revoked and expired ones too; never the keys themselves."""
    import json

    from app.clock import SystemClock

    now = SystemClock().utcnow()
    rows = [_row(key, now) for key in _with_database(lambda keys, _: keys.list(), var, config, overrides)]
    if output == "json":
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    lines = [("NAME", "STATE", "ROLES", "TENANTS", "EXPIRES", "ID")]
    lines += [
        (row["name"], row["state"], ",".join(row["roles"]), ",".join(row["tenants"]), row["expires"] or "-", row["id"]) for row in rows
    ]
    print_table(lines)


@app.command()
def revoke(
    which: Annotated[str, typer.Argument(help="id or name of the key")],
    *,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Revoke a key; running replicas refuse it within a second."""
    key = _with_database(lambda keys, _: keys.revoke(which, operator=operator()), var, config, overrides)
    typer.echo(f"revoked {key.principal.name} ({key.id})")


def _with_database(work: "Callable[[Keys, Tenants], Awaitable[T]]", var: Path, config: Path | None, overrides: list[str] | None) -> T:
    """The result of `work` on the keys and tenants of the database that the settings name. Raises what it raises, and DatabaseDown."""
    import asyncio

    from app.access import urls_beside_serve
    from app.auth.keys import Keys
    from app.clock import SystemClock
    from app.database import create_engine
    from app.observability.metrics import Metrics
    from app.quota.registry import Tenants

    settings = quiet_settings_of(config, var, overrides, "key")
    urls = urls_beside_serve(settings, var)

    async def run() -> T:
        engine = create_engine(urls.registry, settings.database)
        clock, metrics, timeout_ms = SystemClock(), Metrics(), settings.database.timeout_ms
        try:
            return await work(Keys(engine, clock, metrics, timeout_ms=timeout_ms), Tenants(engine, clock, metrics, timeout_ms=timeout_ms))
        finally:
            await engine.dispose()

    return asyncio.run(run())


def _row(key: "Key", now: datetime) -> dict[str, Any]:
    from app.instants import rfc3339

    state = "revoked" if key.revoked else "expired" if key.expires and key.expires <= now else "in force"
    principal = key.principal
    return {
        "id": principal.key_id,
        "name": principal.name,
        "roles": sorted(principal.roles),
        "tenants": sorted(principal.tenants),
        "state": state,
        "created": rfc3339(key.created),
        "expires": rfc3339(key.expires) if key.expires else None,
        "revoked": rfc3339(key.revoked) if key.revoked else None,
    }


def _life(text: str) -> timedelta:
    match = _LIFE.fullmatch(text)
    if match is None:
        raise BadRequest(f"--expires: {text!r} is not a life such as 12h, 90d or 4w", hint="Name hours, days or weeks.", field="expires")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
