"""What a first start lays down for trying Sluice: settings, models, tenants, one key per role. Never over an operator's edits."""

import json
import re
import shutil
import socket
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import structlog

from app import private_files
from app.auth.keys import ROLES, Keys
from app.errors import SluiceError
from app.quota.registry import Registry
from app.setting_sections import EngineSettings
from app.yaml_file import read_yaml

log = structlog.get_logger()

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DEV_KEYS = "dev-keys.json"
_LOOPBACK = re.compile(r"127\.0\.0\.1:(\d+)\"")


def lay_down_settings(var: Path) -> Path:
    """`sluice.yaml` and `models.yaml` in `var`, which exists, copied from the examples where absent; stand-in engines get free ports."""
    settings = var / "sluice.yaml"
    if not (var / "models.yaml").exists():
        shutil.copyfile(EXAMPLES / "models.yaml", var / "models.yaml")
    if not settings.exists():
        text = (EXAMPLES / "sluice.yaml").read_text("utf-8")
        taken: set[int] = set()
        settings.write_text(_LOOPBACK.sub(lambda match: f'127.0.0.1:{_free_port(int(match[1]), taken)}"', text), "utf-8")
    return settings


async def seed_tenants(registry: Registry) -> None:
    """The example tenants, each only where no tenant of that name ever existed."""
    tenants: dict[str, Any] = read_yaml(EXAMPLES / "tenants.yaml")
    await registry.seed(tenants)


async def lay_down_keys(keys: Keys, var: Path) -> Path:
    """`dev-keys.json` {role: key}, mode 0600, left as it is where it is there: a key in it that was revoked stays revoked.

    Without the file nobody knows the keys of an earlier start, or of one that was cut short: they are revoked for new ones.
    Raises ConfigError, DatabaseDown.
    """
    path = var / DEV_KEYS
    if not path.exists():
        names = {role: f"dev-{role}" for role in ROLES}
        await _revoke_lost(keys, set(names.values()), path)
        made = {role: await keys.create(name=name, roles=[role], tenants=["*"], operator="first start") for role, name in names.items()}
        private_files.replace(path, json.dumps({role: key.text for role, key in made.items()}, indent=2).encode())
    return path


async def _revoke_lost(keys: Keys, names: Collection[str], path: Path) -> None:
    """Revoke the keys in force that bear one of `names`."""
    for key in await keys.list():
        if key.revoked is None and key.principal.name in names:
            await keys.revoke(str(key.id), operator="first start")
            log.warning("dev_key.replaced", name=key.principal.name, problem=f"{path} was missing")


def _free_port(wanted: int, taken: set[int]) -> int:
    for port in range(wanted, wanted + 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in taken:
                taken.add(port)
                return port
    raise SluiceError(f"no free port from {wanted} to {wanted + 199} for a stand-in engine")


def announce(url: str, var: Path, engines: Iterable[EngineSettings], *, embedded: bool) -> None:
    """Say on stdout that the service is ready, where its stand-in engines listen, and how to try it."""
    lines = [f"Sluice decides on {url}"]
    lines += [f"  stand-in engine {engine.name}: {engine.url} ({', '.join(engine.models)})" for engine in engines if engine.stand_in]
    if embedded:
        keys = var / DEV_KEYS
        key = f'$(python3 -c \'import json; print(json.load(open("{keys}"))["gateway"])\')'
        lines += [
            f"  keys for trying: {keys} (one per role; mode 0600)",
            "  try:",
            f"    KEY={key}",
            f'    curl -s {url}/decide -H "Authorization: Bearer $KEY" -d @{EXAMPLES / "requests" / "allow.json"}',
            f"    curl -s '{url}/decide?explain' -H \"Authorization: Bearer $KEY\" -d @{EXAMPLES / 'requests' / 'larger-than-the-minute.json'}",
            f"    curl -s {url}/readyz",
        ]
    print("\n".join(lines), flush=True)
