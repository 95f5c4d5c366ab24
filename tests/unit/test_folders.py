"""A folder is held by one process at a time, and sockets live in short private ones."""

import os
import re
import stat
import tempfile
from pathlib import Path

import pytest

from app.errors import ConfigError
from app.folders import SOCKET_PATH_BYTES, FolderInUse, FolderLock, Holder, private_dir, remove_private_dir, working_folder
from tests.fixtures.users import as_nobody

LONG = "x" * 100


@pytest.fixture
def short(monkeypatch):
    """A short folder that also stands for the system's temporary one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_a_second_holder_is_told_who_holds(tmp_path):
    """The second to lock a folder gets an error with the first one's process id and a remedy."""
    first, second = FolderLock(tmp_path / "serve.lock"), FolderLock(tmp_path / "serve.lock")
    first.acquire()

    with pytest.raises(FolderInUse, match=rf"{tmp_path} is in use by process {os.getpid()}$") as refused:
        second.acquire()
    assert "--var DIR" in refused.value.advice


def test_a_released_folder_is_free(tmp_path):
    """After release, which may be called twice, the next one gets the lock."""
    first, second = FolderLock(tmp_path / "serve.lock"), FolderLock(tmp_path / "serve.lock")
    first.acquire()
    first.release()
    first.release()
    second.acquire()

    assert (tmp_path / "serve.lock").read_text() == f"{os.getpid()}\n"
    second.release()


def test_a_dead_holders_longer_pid_leaves_nothing(tmp_path):
    """The file names the present holder only, whatever stood in it."""
    (tmp_path / "serve.lock").write_text("4194304\nmore\n")
    lock = FolderLock(tmp_path / "serve.lock")
    lock.acquire()

    assert (tmp_path / "serve.lock").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_the_holder_of_a_lock_is_known(tmp_path):
    """Whoever looks learns the holder's pid and word, and nobody once it is released or where no file is; looking takes nothing."""
    held, looking = FolderLock(tmp_path / "serve.lock"), FolderLock(tmp_path / "serve.lock")
    assert looking.holder() is None
    assert list(tmp_path.iterdir()) == []

    held.acquire()
    assert looking.holder() == Holder(str(os.getpid()), "")
    held.note("http://127.0.0.1:8080")
    assert looking.holder() == Holder(str(os.getpid()), "http://127.0.0.1:8080")
    held.release()

    assert looking.holder() is None
    held.acquire()
    held.release()


def test_a_folder_is_made_with_its_parents(tmp_path):
    """A working folder is made where it is not there, others may pass through it, and the next call finds it."""
    folder = working_folder(tmp_path / "a" / "var")

    assert stat.S_IMODE(folder.stat().st_mode) == 0o711
    assert working_folder(folder) == folder


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    """Below a file there is no folder: the error names it, why, and the option that names another."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=f"^{tmp_path}/file/var: Not a directory$") as refused:
        working_folder(tmp_path / "file" / "var")
    assert "--var DIR" in refused.value.advice


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_closed_to_us_is_named(short):
    """Neither a folder that may not be made nor one that may not be written is a trace."""
    short.chmod(0o755)
    (short / "closed").mkdir(mode=0o700)
    with as_nobody():
        for folder in (short, short / "var", short / "closed" / "var"):
            with pytest.raises(ConfigError, match=f"^{folder}: Permission denied$"):
                working_folder(folder)


def test_sockets_live_in_the_folder_where_there_is_room(short):
    """A short parent holds the sockets itself, in a folder that nobody else may enter."""
    folder = private_dir(short / "var")

    assert folder == short / "var" / "run"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_dir(short / "var") == folder


def test_a_long_path_gets_a_short_folder_of_its_own(short):
    """Where a socket's path would not fit, the same parent always gets the same short folder, another parent another."""
    folder = private_dir(short / LONG / "a")

    assert folder.parent == short
    assert re.fullmatch(r"sluice-[0-9a-f]{12}", folder.name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_dir(short / LONG / "a") == folder
    assert private_dir(short / LONG / "b") != folder


def test_a_short_folder_is_removed_in_the_end(short):
    """What lies elsewhere goes with all that is in it; what lies in the parent stays, as does what was never made."""
    near, far = private_dir(short / "var"), private_dir(short / LONG)
    (far / "left.sock").touch()
    for parent in (short / "var", short / LONG, short / LONG, short / LONG / "never"):
        remove_private_dir(parent)

    assert near.is_dir()
    assert not far.exists()


def test_no_room_anywhere_is_an_error_with_a_remedy(short, monkeypatch):
    """Where even the short path is too long, the error says how many bytes there are and what to do."""
    monkeypatch.setattr(tempfile, "tempdir", str(short / LONG))

    with pytest.raises(ConfigError, match=f"has {SOCKET_PATH_BYTES} bytes") as refused:
        private_dir(short / LONG)
    assert "TMPDIR" in refused.value.advice


def test_a_planted_link_is_not_followed(short):
    """A link that somebody else put in the place of our folder is refused."""
    folder = private_dir(short / LONG)
    folder.rmdir()
    folder.symlink_to("/etc")

    with pytest.raises(ConfigError, match="is not a folder of user"):
        private_dir(short / LONG)
    assert stat.S_IMODE(Path("/etc").stat().st_mode) == 0o755


def test_a_folder_that_others_may_enter_is_closed(short):
    """A folder of ours that was left open is closed before a socket is put into it."""
    (short / "run").mkdir(mode=0o755)

    assert stat.S_IMODE(private_dir(short).stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_somebody_elses_folder_is_refused(short):
    """A folder that belongs to a third user is refused; one made for the user who shall use it is theirs."""
    (short / "run").mkdir()
    os.chown(short / "run", 65534, 65534)

    with pytest.raises(ConfigError, match="is not a folder of user 0"):
        private_dir(short)
    assert private_dir(short, owner_uid=65534).stat().st_uid == 65534
    assert private_dir(short, "other", owner_uid=65534).stat().st_uid == 65534
