"""Whether the database answers, to each duty's role, and to no role that may more than its duty."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import TIMEOUT_S, nearest, output_of
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.settings import Settings

POSTGRES_VERSIONS = range(15, 19)
LEAST = "Give it the role of its duty; serve has no business with more."


def database(settings: "Settings", var: Path) -> Iterator[Finding]:
    """The embedded database, or each role's way to one of the operator's own."""
    from dataclasses import fields

    from app.database import external_urls
    from app.setting_sections import EMBEDDED

    if settings.database.url == EMBEDDED:
        yield _embedded(settings, var)
        return
    if settings.database.sequencer_url:
        yield _sequencer(settings)
        if not settings.database.owner_url:
            return  # settings of the process of the log, which has no other role
    try:
        urls = external_urls(settings.database)
    except ConfigError as error:
        yield Finding("database", "fail", error.message, error.advice)
        return
    for duty in fields(urls):
        yield asyncio.run(_reachable(duty.name, getattr(urls, duty.name)))


def _sequencer(settings: "Settings") -> Finding:
    """Whether the process of the log reaches the database."""
    from app.database import external_sequencer_url

    try:
        return asyncio.run(_reachable("sequencer", external_sequencer_url(settings.database)))
    except ConfigError as error:
        return Finding("sequencer", "fail", error.message, error.advice)


def _embedded(settings: "Settings", var: Path) -> Finding:
    """Whether the wheel's PostgreSQL can run, as whom, where its data would lie, and whether it answers now."""
    from app.placement import SHARED_HOME, closed_to, ordinary_user
    from app.postgres import wheel_programs

    try:
        user = ordinary_user(var / "postgres" / "data")
        bin_folder = wheel_programs()
        version = output_of([bin_folder / "postgres", "--version"]).strip()
    except ConfigError as error:
        return Finding("database", "fail", error.message, error.advice)
    whose = user.pw_name if user else "this user"
    closed = closed_to(user, bin_folder) or closed_to(user, var.absolute().parent)
    if closed is None:
        return _beside_serve(settings, var, f"{version}, run as {whose}")
    if not os.access(nearest(SHARED_HOME), os.W_OK):
        message = f"{closed} is closed to {whose}, and {SHARED_HOME} cannot be written"
        return Finding("database", "fail", message, "Move the clone, or set database.url to a server of your own.")
    return _beside_serve(settings, var, f"{version}, run as {whose}; {closed} is closed to it, so programs and data lie in {SHARED_HOME}")


def _beside_serve(settings: "Settings", var: Path, able: str) -> Finding:
    """What an embedded database that is able to run does now: it runs beside serve only, and then it must answer."""
    from app.access import urls_beside_serve
    from app.database import DatabaseDown

    try:
        urls = urls_beside_serve(settings, var)
    except DatabaseDown:
        return Finding("database", "ok", f"{able}; not running now, it runs beside serve only")
    except ConfigError as error:
        return Finding("database", "fail", error.message, error.advice)
    tried = asyncio.run(_reachable("registry", urls.registry))
    return Finding("database", "ok", f"{able}; answers beside serve") if tried.level == "ok" else tried


async def _reachable(duty: str, url: str) -> Finding:
    import psycopg

    from app.database import conninfo, first_line, role_of

    name = "database" if duty == "registry" else duty
    setting = "database.url" if duty == "registry" else f"database.{duty}_url"
    try:
        async with await psycopg.AsyncConnection.connect(conninfo(url), connect_timeout=TIMEOUT_S) as connection:
            version = connection.info.server_version // 10_000
            role = await role_of(connection)
    except psycopg.Error as error:
        return Finding(name, "fail", f"{setting}: {first_line(error)}", "Start the server, or correct the setting.")
    if version not in POSTGRES_VERSIONS:
        return Finding(name, "fail", f"{setting}: PostgreSQL {version}", "Use a server of version 15 to 18.")
    if role.superuser:
        return Finding(name, "fail", f"{setting}: a superuser", LEAST)
    if role.owns_log and duty != "owner":
        return Finding(name, "fail", f"{setting}: {role.name}, which may change the tables of the log", LEAST)
    return Finding(name, "ok", f"PostgreSQL {version} as {role.name}")
