"""`sluice doctor`: what is missing on this machine, and what to do about it. It changes nothing."""

import asyncio
import contextlib
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.cli.options import Overrides
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.settings import OpaSettings, Settings
    from app.telemetry.snapshot import Gpu

NEEDED_MIB = 300  # programs and an empty database
WANTED_MIB = 2000  # and some months of the log
PROBE_TIMEOUT_S = 5
POSTGRES_VERSIONS = range(15, 19)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `remedy` is empty where nothing needs doing."""

    name: str
    level: Literal["ok", "warn", "fail"]
    message: str
    remedy: str = ""


def doctor(
    *,
    config: Annotated[Path | None, typer.Option(help="settings file; without it sluice.yaml in --var")] = None,
    var: Annotated[Path, typer.Option(help="the folder that serve is given")] = Path("var"),
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="port of the HTTP API, over the one in the settings")] = None,
    overrides: Overrides = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="for people or for programs")] = "text",
) -> None:
    """Say what is missing and what to do. Exit 0 where nothing is, 2 for wrong settings, 6 for the rest."""
    listen = (f"listen=127.0.0.1:{port}",) if port else ()
    findings = list(_examine(config, var, (*(overrides or ()), *listen)))
    if output == "json":
        typer.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            typer.echo(f"{finding.level:5} {finding.name:9} {finding.message}")
            if finding.remedy:
                typer.echo(f"{'':15} {finding.remedy}")
    failed = {finding.name for finding in findings if finding.level == "fail"}
    raise typer.Exit(0 if not failed else 2 if "settings" in failed else 6)


def _examine(config: Path | None, var: Path, overrides: tuple[str, ...]) -> Iterator[Finding]:
    yield _python()
    yield _packages()
    yield _digest()
    yield _folder(var)
    yield _disk(var)
    from app.settings import load_settings, settings_file

    file = settings_file(config, var)
    try:
        settings = load_settings(file, overrides)
    except ConfigError as error:
        yield Finding("settings", "fail", error.message, error.advice)
        return
    yield Finding("settings", "ok", str(file or "defaults and environment"))
    yield _listen(settings.listen, var)
    yield _opa(settings.opa)
    yield from _database(settings, var)
    yield _gpus(settings)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} on {sys.platform}, {sys.executable}")


def _packages() -> Finding:
    """Whether what Sluice declares is installed where it runs."""
    declared = [line for line in importlib.metadata.requires("sluice") or [] if "extra ==" not in line]
    names = [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in declared]
    installed = {_canonical(found.metadata["Name"]) for found in importlib.metadata.distributions()}
    if missing := [name for name in names if _canonical(name) not in installed]:
        return Finding("packages", "fail", f"missing: {', '.join(missing)}", "Run `make setup`.")
    if sys.prefix == sys.base_prefix:
        return Finding(
            "packages", "warn", "complete, but not in an environment of their own", "`make setup` makes one from locked versions."
        )
    return Finding("packages", "ok", f"complete in {sys.prefix}")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _digest() -> Finding:
    if "sm3" not in hashlib.algorithms_available:
        return Finding(
            "sm3", "warn", f"{ssl.OPENSSL_VERSION} lacks SM3, which the log needs", "Use a Python linked to an OpenSSL 3 with SM3."
        )
    return Finding("sm3", "ok", ssl.OPENSSL_VERSION)


def _folder(var: Path) -> Finding:
    nearest = _nearest(var)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("var", "fail", f"{nearest.absolute()} cannot be written", "Give another folder with --var DIR, or mend its owner.")
    return Finding("var", "ok", f"{var.absolute()}{'' if var.exists() else ', not there yet'}")


def _nearest(folder: Path) -> Path:
    """`folder`, or the first of its parents that is there for this user: what lies in a closed folder is not."""
    return next(part for part in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(part))


def _disk(var: Path) -> Finding:
    free_mib = shutil.disk_usage(_nearest(var)).free // 2**20
    message = f"{free_mib} MiB free for {var.absolute()}"
    if free_mib < WANTED_MIB:
        return Finding("disk", "fail" if free_mib < NEEDED_MIB else "warn", message, "Make room, or give another folder with --var DIR.")
    return Finding("disk", "ok", message)


def _listen(listen: str, var: Path) -> Finding:
    """Whether serve can listen, or already does: what runs on this `var` may listen elsewhere than its settings say now."""
    from app.folders import SERVE_LOCK, FolderLock

    with contextlib.suppress(ConfigError):  # a closed folder: said above
        if (holder := FolderLock(var / SERVE_LOCK).holder()) is not None:
            return Finding("port", "ok", f"{holder.word or listen}, served by this serve (pid {holder.pid})")
    host, _, port = listen.rpartition(":")
    try:
        family, *_, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return Finding("port", "fail", f"{listen}: {error.strerror}", "End what listens there, or take another with --port N.")
    return Finding("port", "ok", f"{listen} is free")


def _opa(settings: "OpaSettings") -> Finding:
    from app.policy.program import find_opa

    if settings.url != "embedded":
        return _answering(settings.url)
    try:
        binary = find_opa(settings.binary)
        said = _said([binary, "version"])
    except ConfigError as error:
        return Finding("opa", "fail", error.message, error.advice)
    if "Rego Version: v1" not in said.splitlines():
        return Finding("opa", "fail", f"{binary} is no OPA of 1.0 or newer", "Remove it and run `make setup`, or set opa.binary.")
    return Finding("opa", "ok", f"{said.splitlines()[0]} at {binary}")


def _answering(url: str) -> Finding:
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=PROBE_TIMEOUT_S):  # noqa: S310 - the operator's own setting
            return Finding("opa", "ok", f"{url} answers")
    except (OSError, ValueError) as error:
        return Finding("opa", "fail", f"{url}: {error}", "Start it, correct opa.url, or leave it `embedded`.")


def _said(command: list[str | Path]) -> str:
    """What a program prints. Raises ConfigError where it does not run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PROBE_TIMEOUT_S).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{command[0]} does not run: {error}", hint="Run `make setup`.") from None


def _database(settings: "Settings", var: Path) -> Iterator[Finding]:
    from dataclasses import fields

    from app.database import external_urls
    from app.settings import EMBEDDED

    if settings.database.url == EMBEDDED:
        yield _embedded(settings, var)
        return
    try:
        urls = external_urls(settings.database)
    except ConfigError as error:
        yield Finding("database", "fail", error.message, error.advice)
        return
    for duty in fields(urls):
        yield asyncio.run(_reachable(duty.name, getattr(urls, duty.name)))


def _embedded(settings: "Settings", var: Path) -> Finding:
    """Whether the wheel's PostgreSQL can run, as whom, where its data would lie, and whether it answers now."""
    from app.placement import SHARED_HOME, closed_to, ordinary_user
    from app.postgres import wheel_programs

    try:
        user = ordinary_user(var / "postgres" / "data")
        bin_folder = wheel_programs()
        version = _said([bin_folder / "postgres", "--version"]).strip()
    except ConfigError as error:
        return Finding("database", "fail", error.message, error.advice)
    whose = user.pw_name if user else "this user"
    closed = closed_to(user, bin_folder) or closed_to(user, var.absolute().parent)
    if closed is None:
        return _beside_serve(settings, var, f"{version}, run as {whose}")
    if not os.access(_nearest(SHARED_HOME), os.W_OK):
        message = f"{closed} is closed to {whose}, and {SHARED_HOME} cannot be written"
        return Finding("database", "fail", message, "Move the clone, or set database.url to a server of your own.")
    return _beside_serve(settings, var, f"{version}, run as {whose}; {closed} is closed to it, so programs and data lie in {SHARED_HOME}")


def _beside_serve(settings: "Settings", var: Path, able: str) -> Finding:
    """What an embedded database that is able to run does now: it runs beside serve only, and then it must answer."""
    from app.database import DatabaseDown
    from app.postgres import urls_beside_serve

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

    from app.database import conninfo

    name = "database" if duty == "registry" else duty
    setting = "database.url" if duty == "registry" else f"database.{duty}_url"
    try:
        async with await psycopg.AsyncConnection.connect(conninfo(url), connect_timeout=PROBE_TIMEOUT_S) as connection:
            version = connection.info.server_version // 10_000
            role = await (await connection.execute("SELECT rolname::text, rolsuper FROM pg_roles WHERE rolname = current_user")).fetchone()
    except psycopg.Error as error:
        return Finding(name, "fail", f"{setting}: {error}".strip(), "Start the server, or correct the setting.")
    if version not in POSTGRES_VERSIONS:
        return Finding(name, "fail", f"{setting}: PostgreSQL {version}", "Use a server of version 15 to 18.")
    if role is None or role[1]:
        return Finding(name, "fail", f"{setting}: a superuser", "Give it the role of its duty; serve has no business with more.")
    return Finding(name, "ok", f"PostgreSQL {version} as {role[0]}")


def _gpus(settings: "Settings") -> Finding:
    """What this machine tells of device memory, in words; none is no fault, unless engines count on it."""
    from app.clock import SystemClock
    from app.settings import EMBEDDED
    from app.telemetry.nvidia_smi import NvidiaSmi
    from app.telemetry.nvml import Nvml

    if settings.telemetry.url != EMBEDDED:
        return Finding("gpus", "ok", f"read by the telemetry process at {settings.telemetry.url}")
    sources = [("NVML", settings.gpus.nvml, Nvml), ("nvidia-smi", settings.gpus.nvidia_smi, NvidiaSmi)]
    said: list[str] = []
    told = False
    for name, wanted, source in sources:
        if wanted != "off" and not told:
            told, words = asyncio.run(_device_memory(source(SystemClock()).read))
            said.append(f"{name}: {words}")
    said += [f"DCGM exporters: {len(settings.gpus.dcgm)}"] if settings.gpus.dcgm else []
    message = "; ".join(said) or "not looked at"
    if told or settings.gpus.dcgm or not any(engine.gpus for engine in settings.engines):
        return Finding("gpus", "ok", message)
    return Finding("gpus", "warn", message, "Engines name GPUs that nobody reports: run where they are, or set gpus.dcgm.")


async def _device_memory(read: "Callable[[], tuple[Gpu, ...] | None]") -> tuple[bool, str]:
    """Whether a source tells its GPUs, and what it says."""
    from app.telemetry.blocking import Blocking
    from app.telemetry.device_memory import SourceDown

    try:
        gpus = await Blocking("gpus").call(read, PROBE_TIMEOUT_S) or ()
    except TimeoutError:
        return False, f"no answer in {PROBE_TIMEOUT_S} s"
    except SourceDown as down:
        return False, down.problem.replace("_", " ")
    unknown = sorted({f"{gpu.id} {gpu.problem}" for gpu in gpus if gpu.problem})
    return True, f"{len(gpus)} GPUs or MIG instances{', unknown: ' if unknown else ''}{', '.join(unknown)}"
