"""Whether this machine has what Sluice needs: Python and its packages, a folder with room, a free port, readable GPUs."""

import asyncio
import contextlib
import hashlib
import importlib.metadata
import os
import re
import shutil
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import TIMEOUT_S, nearest
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.settings import Settings
    from app.telemetry.snapshot import Gpu

NEEDED_MIB = 300  # programs and an empty database
WANTED_MIB = 2000  # and some months of the log


def python() -> Finding:
    """Which Python runs Sluice."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} on {sys.platform}, {sys.executable}")


def packages() -> Finding:
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


def digest() -> Finding:
    """Whether this Python has the digest that the log is built on."""
    if "sm3" not in hashlib.algorithms_available:
        return Finding(
            "sm3", "warn", f"{ssl.OPENSSL_VERSION} lacks SM3, which the log needs", "Use a Python linked to an OpenSSL 3 with SM3."
        )
    return Finding("sm3", "ok", ssl.OPENSSL_VERSION)


def folder(var: Path) -> Finding:
    """Whether what serve keeps can be written where it is told to."""
    there = nearest(var)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding("var", "fail", f"{there.absolute()} cannot be written", "Give another folder with --var DIR, or mend its owner.")
    return Finding("var", "ok", f"{var.absolute()}{'' if var.exists() else ', not there yet'}")


def disk(var: Path) -> Finding:
    """Whether there is room for it."""
    free_mib = shutil.disk_usage(nearest(var)).free // 2**20
    message = f"{free_mib} MiB free for {var.absolute()}"
    if free_mib < WANTED_MIB:
        return Finding("disk", "fail" if free_mib < NEEDED_MIB else "warn", message, "Make room, or give another folder with --var DIR.")
    return Finding("disk", "ok", message)


def listen(listen: str, var: Path) -> Finding:
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


def gpus(settings: "Settings") -> Finding:
    """What this machine tells of device memory, in words; none is no fault, unless engines count on it."""
    from app.clock import SystemClock
    from app.setting_sections import EMBEDDED
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
        gpus = await Blocking("gpus").call(read, TIMEOUT_S) or ()
    except TimeoutError:
        return False, f"no answer in {TIMEOUT_S} s"
    except SourceDown as down:
        return False, down.problem.replace("_", " ")
    unknown = sorted({f"{gpu.id} {gpu.problem}" for gpu in gpus if gpu.problem})
    return True, f"{len(gpus)} GPUs or MIG instances{', unknown: ' if unknown else ''}{', '.join(unknown)}"
