"""Files that appear together, and only when all are whole."""

import stat
from pathlib import Path

import pytest

from app.audit.format.leaf import sm3
from app.errors import ConfigError
from app.reports.subjects.drafts import drafts


def give(folder: Path, *names: str) -> None:
    """Files whose content is their name."""
    with drafts(folder) as writing:
        for name in names:
            writing.add(name, name.encode())
        writing.give()


def test_files_appear_together(tmp_path: Path):
    """Before they are given nothing has its name; then all have, each for its owner alone, in a folder for its owner alone."""
    folder = tmp_path / "new" / "out"
    with drafts(folder) as writing:
        writing.add("b.csv", b"two")
        with writing.new("a.json") as file:
            file.write(b"one")
        before = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        sums = writing.sums()
        given = writing.give()

    assert (before, given) == ([], [folder / "a.json", folder / "b.csv"])
    assert sums == [{"name": "a.json", "sm3": sm3(b"one").hex()}, {"name": "b.csv", "sm3": sm3(b"two").hex()}]
    assert sorted(folder.iterdir()) == given
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, *given)] == [0o700, 0o600, 0o600]


def test_nothing_is_overwritten(tmp_path: Path):
    """Where one of the names is taken none is given, and what is there stays."""
    (tmp_path / "b.csv").write_bytes(b"mine")

    with pytest.raises(ConfigError, match=r"--out: .*File exists"):
        give(tmp_path, "a.json", "b.csv")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b.csv", b"mine")]


def test_what_fails_leaves_nothing(tmp_path: Path):
    """An error while they are written takes the drafts away."""
    with pytest.raises(UnicodeEncodeError):
        give(tmp_path, "a.json", "\ud800")

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none_is_named(tmp_path: Path):
    """The option stands in the error, with what to do."""
    (tmp_path / "out").write_bytes(b"")

    with pytest.raises(ConfigError, match=r"--out: .*out: File exists"), drafts(tmp_path / "out"):
        pass
