"""Files of secrets are whole and for their owner alone, whenever the process that writes them ends."""

import errno
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import private_files
from app.errors import ConfigError

WRITERS = [private_files.write_once, private_files.replace]


class Cut(BaseException):
    """Stands for the end of the process."""


def cut(*_: object, **__: object) -> None:
    raise Cut


@pytest.mark.parametrize("write", WRITERS)
def test_only_the_owner_reads_it(tmp_path: Path, write: Callable[[Path, bytes], object]):
    """File 0600, its new folder 0700, nothing else left there, whatever the umask allows."""
    before = os.umask(0)
    try:
        write(tmp_path / "secrets" / "key", b"one")
    finally:
        os.umask(before)

    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["key"]
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "secrets" / "key").stat().st_mode) == 0o600
    assert (tmp_path / "secrets" / "key").read_bytes() == b"one"


def test_what_is_there_stays(tmp_path: Path):
    """The first content is kept for good, and each caller gets it."""
    assert private_files.write_once(tmp_path / "key", b"one") == b"one"
    assert private_files.write_once(tmp_path / "key", b"two") == b"one"


def test_who_writes_together_gets_one_content(tmp_path: Path):
    """Processes that start at the same moment agree."""
    with ThreadPoolExecutor(8) as pool:
        got = set(pool.map(lambda number: private_files.write_once(tmp_path / "key", b"%d" % number), range(8)))

    assert got == {(tmp_path / "key").read_bytes()}


def test_a_replacement_is_private_though_the_old_file_was_not(tmp_path: Path):
    """Rights of what was there before do not carry over, nor does a link lead the secret elsewhere."""
    (tmp_path / "open").write_bytes(b"old")
    (tmp_path / "key").symlink_to(tmp_path / "open")

    private_files.replace(tmp_path / "key", b"new")

    assert (tmp_path / "open").read_bytes() == b"old"
    assert stat.S_IMODE((tmp_path / "key").lstat().st_mode) == 0o600
    assert (tmp_path / "key").read_bytes() == b"new"


@pytest.mark.parametrize("write", WRITERS)
def test_a_cut_leaves_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], object]):
    """Cut before the content reached the disk there is no file, and the next start writes it."""
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", cut)
        with pytest.raises(Cut):
            write(tmp_path / "key", b"one")
    assert list(tmp_path.iterdir()) == []

    write(tmp_path / "key", b"two")
    assert (tmp_path / "key").read_bytes() == b"two"


def test_a_cut_replacement_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A replacement that did not come to its end has replaced nothing."""
    private_files.replace(tmp_path / "key", b"one")
    monkeypatch.setattr(os, "fsync", cut)

    with pytest.raises(Cut):
        private_files.replace(tmp_path / "key", b"two")
    assert (tmp_path / "key").read_bytes() == b"one"


@pytest.mark.parametrize("write", WRITERS)
def test_when_it_cannot_be_written_the_start_ends(tmp_path: Path, write: Callable[[Path, bytes], object]):
    """A folder that is a file is a ConfigError that names the path and shows no secret."""
    (tmp_path / "secrets").touch()

    with pytest.raises(ConfigError, match=rf"{tmp_path}/secrets/key: ") as refused:
        write(tmp_path / "secrets" / "key", b"sesame")
    assert "sesame" not in f"{refused.value} {refused.value.advice}"


@pytest.mark.parametrize("mode", [0o601, 0o604, 0o610, 0o640, 0o666])
def test_what_others_could_read_is_not_taken_for_a_secret(tmp_path: Path, mode: int):
    """A file or a folder that is open to group or others is refused with the remedy; closed, it is taken."""
    private_files.replace(tmp_path / "secrets" / "key", b"sesame")
    assert private_files.read(tmp_path / "secrets" / "key") == b"sesame"
    private_files.check_folder(tmp_path / "secrets")

    (tmp_path / "secrets" / "key").chmod(mode)
    (tmp_path / "secrets").chmod(mode | 0o100)
    for refuse, remedy in (
        (lambda: private_files.read(tmp_path / "secrets" / "key"), "chmod 600 "),
        (lambda: private_files.check_folder(tmp_path / "secrets"), "chmod 700 "),
    ):
        with pytest.raises(ConfigError, match="open to others") as refused:
            refuse()
        assert refused.value.advice.startswith(remedy)
        assert "sesame" not in f"{refused.value} {refused.value.advice}"


def test_what_is_not_there_is_a_config_error(tmp_path: Path):
    """A missing file, a missing folder and a file in a folder's place are named."""
    (tmp_path / "file").touch()
    for attempt, path in (
        (private_files.read, tmp_path / "key"),
        (private_files.check_folder, tmp_path / "folder"),
        (private_files.check_folder, tmp_path / "file"),
    ):
        with pytest.raises(ConfigError, match=str(path)):
            attempt(path)


def test_a_full_disk_is_told_as_that():
    """Where room is missing the remedy is room, whatever else is said of files that cannot be written."""
    told = []
    for number in (errno.ENOSPC, errno.EACCES):
        with pytest.raises(ConfigError) as refused, private_files.refused_as("waiting.json", "Let this user write."):
            raise OSError(number, "said the system")
        told.append((refused.value.message, refused.value.advice))

    assert told == [("waiting.json: said the system", "Make room on that disk."), ("waiting.json: said the system", "Let this user write.")]
