"""How a process reaches PostgreSQL: by the settings, or beside a serve that keeps an embedded server.

When down: DatabaseDown where no serve runs; the embedded server lives only beside one.
"""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from app import private_files
from app.database import (
    INTAKE,
    LOG,
    OWNER,
    REGISTRY,
    ROLES,
    SEQUENCER,
    DatabaseDown,
    DatabaseUrls,
    external_sequencer_url,
    external_urls,
    url_of,
)
from app.errors import ConfigError
from app.folders import FolderLock
from app.setting_sections import EMBEDDED
from app.settings import Settings

ADMIN = "postgres"
DATABASE = "sluice"
LOCK = "postgres.lock"  # held for as long as serve keeps the server


class Access:
    """How to reach the embedded server: its socket folder and one random password a role, in a file of mode 0600."""

    def __init__(self, secrets_dir: Path) -> None:
        self._file = secrets_dir / "database.json"

    def prepare(self, sockets: Path, *, must_exist: bool) -> None:
        """Write the file, with new passwords where there is none. Raises ConfigError where a database exists whose passwords are lost."""
        if not self._file.exists() and must_exist:
            raise ConfigError(
                f"{self._file}: missing, so nobody knows the passwords of the database that exists",
                hint="Put the file back, or remove the database's folder to begin anew.",
            )
        passwords = self._read()["passwords"] if self._file.exists() else {role: secrets.token_urlsafe(24) for role in (ADMIN, *ROLES)}
        access = {"host": os.fspath(sockets), "passwords": passwords}
        if self._file.exists() and access == self._read():
            return  # left as it is, and its owner's, when root starts what somebody else began
        private_files.replace(self._file, json.dumps(access).encode())

    def password(self, role: str) -> str:
        """The password of `role`."""
        return str(self._read()["passwords"][role])

    def url(self, role: str, database: str) -> str:
        """The URL with which `role` reaches `database`."""
        return url_of(role, self.password(role), database, Path(self._read()["host"]))

    def urls(self) -> DatabaseUrls:
        """The URLs of serve's duties, readable by another process of the same user while serve runs."""
        return DatabaseUrls(*(self.url(role, DATABASE) for role in (OWNER, REGISTRY, INTAKE, LOG)))

    def _read(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._file.read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self._file}: {getattr(error, 'strerror', None) or 'damaged'}",
                hint="`sluice serve` with an embedded database writes it; give the same --var, as the same user.",
            ) from None


def is_running(var: Path) -> bool:
    """Whether a serve keeps an embedded server under `var` now. Raises ConfigError where this user may not know."""
    return FolderLock(var / LOCK).holder() is not None


def urls_beside_serve(settings: Settings, var: Path) -> DatabaseUrls:
    """The URLs of the database that serve uses with these settings and `var`, for another command. Raises ConfigError, DatabaseDown."""
    if settings.database.url != EMBEDDED:
        return external_urls(settings.database)
    return _beside_serve(settings, var).urls()


def sequencer_url_beside_serve(settings: Settings, var: Path) -> str:
    """The same for the sequencer of the log."""
    if settings.database.url != EMBEDDED:
        return external_sequencer_url(settings.database)
    return _beside_serve(settings, var).url(SEQUENCER, DATABASE)


def _beside_serve(settings: Settings, var: Path) -> Access:
    if not is_running(var):
        raise DatabaseDown(
            f"serve is not running on --var {var}; the embedded database runs only beside it",
            hint=f"Start `sluice serve --var {var}` and try again while it runs, or name the folder of the serve that does.",
        )
    return Access(secrets_folder(settings, var))


def secrets_folder(settings: Settings, var: Path) -> Path:
    """Where serve keeps what only files hold, passwords of the embedded database among it."""
    return Path(settings.secrets.path or var / "secrets")
