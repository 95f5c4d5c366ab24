"""Whose rights a child gets that must not be root, and where its programs and data lie so that this user reaches them.

A clone under root's home is closed to everybody else. We open no folder but our own: what such a child needs moves to /var/lib/sluice.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import stat
import tempfile
from pathlib import Path

from app.errors import ConfigError

SHARED_HOME = Path("/var/lib/sluice")
ORDINARY_USERS = ("postgres", "nobody")  # the first that passwd knows: PostgreSQL looks its own name up there


def ordinary_user(data: Path) -> pwd.struct_passwd | None:
    """The user whose rights a child of root gets: who owns `data` already, else one of ORDINARY_USERS. None where we are not root.

    Raises ConfigError where passwd knows none of them.
    """
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(OSError, KeyError):
        if owner := data.stat().st_uid:
            return pwd.getpwuid(owner)
    for name in ORDINARY_USERS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise ConfigError(
        f"no user to run PostgreSQL as: passwd knows none of {', '.join(ORDINARY_USERS)}",
        hint="Run as an ordinary user, add such a user, or set database.url to a server of your own.",
    )


def closed_to(user: pwd.struct_passwd | None, folder: Path) -> Path | None:
    """The first folder on the way to `folder`, itself included, that `user` may not enter; None where the way is open."""
    if user is None:
        return None
    groups = set(os.getgrouplist(user.pw_name, user.pw_gid))
    way = [*reversed(folder.resolve().parents), folder.resolve()]
    return next((part for part in way if part.exists() and not _may_enter(part.stat(), user.pw_uid, groups)), None)


def _may_enter(found: os.stat_result, uid: int, groups: set[int]) -> bool:
    if found.st_uid == uid:
        return bool(found.st_mode & stat.S_IXUSR)
    return bool(found.st_mode & (stat.S_IXGRP if found.st_gid in groups else stat.S_IXOTH))


def home_in(var: Path, name: str, user: pwd.struct_passwd | None) -> Path:
    """The folder `name` of `var`, made if need be, where `user` reaches what is in it. `var` itself gets mode 0711.

    Where a parent of `var` is closed it is a link to a folder of its own under /var/lib/sluice: without the link, a new one is made.
    """
    var.mkdir(parents=True, exist_ok=True)
    var.chmod(0o711)
    home = var.absolute() / name
    if not home.is_symlink() and closed_to(user, var):
        home.symlink_to(shared_home() / f"{name}-{secrets.token_hex(4)}")
    home = home.resolve()
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    return home


def programs_for(user: pwd.struct_passwd | None, folder: Path, copy_name: str, parts: tuple[str, ...]) -> Path:
    """`folder` where `user` reaches it, else its copy `copy_name` under /var/lib/sluice, holding `parts`, made once."""
    if closed_to(user, folder) is None:
        return folder
    copy = shared_home() / copy_name
    if not copy.exists():
        making = Path(tempfile.mkdtemp(prefix=f".{copy_name}-", dir=copy.parent))
        for part in parts:
            if (folder / part).exists():
                shutil.copytree(folder / part, making / part, symlinks=True)
        making.chmod(0o755)
        try:
            making.rename(copy)
        except OSError:  # another start was quicker; its copy is as good
            shutil.rmtree(making)
    return copy


def shared_home() -> Path:
    """/var/lib/sluice, made if need be. Raises ConfigError."""
    try:
        SHARED_HOME.mkdir(mode=0o711, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{SHARED_HOME}: {error.strerror}",
            hint="Move the clone out of the closed folder, run as an ordinary user, or set database.url to a server of your own.",
        ) from None
    return SHARED_HOME
