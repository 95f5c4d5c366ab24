"""A child without root's rights gets a user and folders that it can reach, and no folder but ours is opened."""

import os
import pwd
import stat
import tempfile
from pathlib import Path

import pytest

from app import placement
from app.errors import ConfigError
from app.placement import closed_to, home_in, ordinary_user, programs_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root drops rights")

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def open_folder(monkeypatch):
    """A folder that everybody may enter, with a stand-in for /var/lib/sluice in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(placement, "SHARED_HOME", Path(folder) / "shared")
        yield Path(folder)


@pytest.fixture
def closed_folder(open_folder):
    """A folder that root alone may enter, as root's home is."""
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    return closed


def test_the_first_known_user_is_taken(open_folder, monkeypatch):
    """Names that passwd does not know are passed over."""
    monkeypatch.setattr(placement, "ORDINARY_USERS", ("no-such-user", "nobody"))

    assert ordinary_user(open_folder / "absent") == NOBODY


def test_no_known_user_is_an_error_with_a_remedy(open_folder, monkeypatch):
    """Without any such user the error says what to do instead."""
    monkeypatch.setattr(placement, "ORDINARY_USERS", ("no-such-user",))

    with pytest.raises(ConfigError, match="passwd knows none of no-such-user") as refused:
        ordinary_user(open_folder / "absent")
    assert "database.url" in refused.value.advice


def test_data_keep_their_owner(open_folder):
    """Data that an ordinary user began are served with that user's rights when root starts the same folder."""
    os.chown(open_folder, NOBODY.pw_uid, NOBODY.pw_gid)

    assert ordinary_user(open_folder) == NOBODY


def test_the_folder_that_bars_the_way_is_named(closed_folder):
    """The first folder that the user may not enter is told; root's own way is always open."""
    assert closed_to(NOBODY, closed_folder / "a" / "b") == closed_folder
    assert closed_to(None, closed_folder / "a" / "b") is None
    assert closed_to(NOBODY, closed_folder.parent) is None


def test_a_group_may_open_the_way(closed_folder):
    """Rights count as the kernel counts them: owner's, else group's, else the others'."""
    closed_folder.chmod(0o710)
    assert closed_to(NOBODY, closed_folder) == closed_folder

    os.chown(closed_folder, 0, NOBODY.pw_gid)
    assert closed_to(NOBODY, closed_folder) is None

    os.chown(closed_folder, NOBODY.pw_uid, 0)
    closed_folder.chmod(0o011)
    assert closed_to(NOBODY, closed_folder) == closed_folder


def test_a_home_stays_under_var_where_the_way_is_open(open_folder):
    """Data lie under var itself, which is opened for passing through only."""
    home = home_in(open_folder / "var", "postgres", NOBODY)

    assert home == open_folder / "var" / "postgres"
    assert stat.S_IMODE((open_folder / "var").stat().st_mode) == 0o711
    assert not (open_folder / "shared").exists()


def test_a_home_behind_a_closed_parent_lies_elsewhere(closed_folder):
    """Data move out of a closed folder, which stays closed; var links to them, so that the next start finds the same."""
    home = home_in(closed_folder / "var", "postgres", NOBODY)

    assert home.parent == closed_folder.parent / "shared"
    assert closed_to(NOBODY, home) is None
    assert stat.S_IMODE(closed_folder.stat().st_mode) == 0o700
    assert home_in(closed_folder / "var", "postgres", NOBODY) == home


def test_without_its_link_a_new_home_is_made(closed_folder):
    """A var that was removed begins anew; another's data are never taken for its own."""
    first = home_in(closed_folder / "var", "postgres", NOBODY)
    (closed_folder / "var" / "postgres").unlink()

    assert home_in(closed_folder / "var", "postgres", NOBODY) != first


def test_reachable_programs_stay(open_folder):
    """Programs that the user reaches are not copied."""
    assert programs_for(NOBODY, open_folder, "copy-1", ("bin",)) == open_folder


def test_programs_behind_a_closed_parent_are_copied_once(closed_folder):
    """What is named is copied whole, the rest stays; the second call finds the copy."""
    (closed_folder / "kit" / "bin").mkdir(parents=True)
    (closed_folder / "kit" / "bin" / "run").write_text("program")
    (closed_folder / "other").mkdir()
    copy = programs_for(NOBODY, closed_folder, "copy-1", ("kit/bin", "kit.libs"))
    (copy / "kit" / "bin" / "run").write_text("seen before")

    assert closed_to(NOBODY, copy / "kit" / "bin") is None
    assert sorted(path.name for path in copy.iterdir()) == ["kit"]
    assert programs_for(NOBODY, closed_folder, "copy-1", ("kit/bin", "kit.libs")) == copy
    assert (copy / "kit" / "bin" / "run").read_text() == "seen before"
    assert [path.name for path in copy.parent.iterdir()] == ["copy-1"]


def test_a_shared_home_that_cannot_be_made_is_an_error_with_a_remedy(closed_folder, monkeypatch):
    """Where nothing can be written either, the error names the folder and the ways out."""
    (closed_folder / "file").touch()
    monkeypatch.setattr(placement, "SHARED_HOME", closed_folder / "file" / "sluice")

    with pytest.raises(ConfigError, match="Not a directory") as refused:
        home_in(closed_folder / "var", "postgres", NOBODY)
    assert "Move the clone" in refused.value.advice
