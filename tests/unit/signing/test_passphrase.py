"""Where the passphrase of the log's keys may come from, and from where it may not."""

import os
from pathlib import Path

import pytest
import structlog

from app.errors import ConfigError
from app.settings import Settings, load_settings
from app.signing.passphrase import known_passphrase, passphrase_of, read_passphrase

SECRET = b"correct horse battery"
OWN_DATABASE = "database.url=postgresql://sluice_registry:x@127.0.0.1/sluice"


@pytest.fixture
def var(tmp_path: Path) -> Path:
    (tmp_path / "var").mkdir()
    return tmp_path / "var"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A passphrase outside of --var, for its owner alone."""
    path = tmp_path / "passphrase"
    path.touch(0o600)
    path.write_bytes(SECRET + b"\n")
    return path


def set_to(value: str, *more: str) -> Settings:
    return load_settings(overrides=(f"audit.passphrase={value}", OWN_DATABASE, *more))


def descriptor(content: bytes) -> int:
    """One that is open for reading, with `content` to come."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def test_a_file_outside_of_var(var: Path, file: Path):
    """Its content without the end of the line is the passphrase, as often as it is asked."""
    for _ in range(2):
        assert passphrase_of(set_to(f"file:{file}"), var) == SECRET
        assert known_passphrase(set_to(f"file:{file}"), var) == SECRET


def test_a_descriptor_is_read_once(var: Path):
    """It is read to its end and closed; to look leaves it alone."""
    number = descriptor(SECRET + b"\n")
    settings = set_to(f"fd:{number}")

    assert known_passphrase(settings, var) is None
    assert passphrase_of(settings, var) == SECRET
    with pytest.raises(ConfigError, match="no descriptor that is open for reading"):
        passphrase_of(settings, var)


@pytest.mark.parametrize("number", ["9999", "9" * 20, "-1", "three", ""])
def test_no_descriptor_is_a_config_error(var: Path, number: str):
    """A number that is none, or of nothing that is open, names the setting."""
    with pytest.raises(ConfigError, match=r"audit\.passphrase: "):
        passphrase_of(set_to(f"fd:{number}"), var)


def test_beside_the_keys_it_is_refused(var: Path, file: Path, tmp_path: Path):
    """In --var, in the folder of keys, or there by a link: a copy of the keys would have it, too."""
    (var / "passphrase").write_bytes(SECRET)
    (tmp_path / "link").symlink_to(var / "passphrase")
    for settings in (
        set_to(f"file:{var}/passphrase"),
        set_to(f"file:{var}/../var/passphrase"),
        set_to(f"file:{tmp_path}/link"),
        set_to(f"file:{file}", f"audit.keys={tmp_path}"),
    ):
        with pytest.raises(ConfigError, match=r"audit\.passphrase: .* beside the keys that it opens"):
            passphrase_of(settings, var)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o666])
def test_a_file_that_others_can_read_is_refused(var: Path, file: Path, mode: int):
    """It is a ConfigError that says chmod 600."""
    file.chmod(mode)

    with pytest.raises(ConfigError, match=f"passphrase: open to others \\(mode {mode:o}\\)") as refused:
        passphrase_of(set_to(f"file:{file}"), var)
    assert refused.value.advice == f"chmod 600 {file}"


@pytest.mark.parametrize(("mode", "taken"), [(0o440, True), (0o444, False), (0o460, False)])
def test_a_file_that_root_mounts_is_read_by_its_group(var: Path, file: Path, monkeypatch: pytest.MonkeyPatch, mode: int, taken: bool):
    """Somebody else's file may be readable by a group, which is how containers get secrets, and by nobody else."""
    file.chmod(mode)
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)

    if taken:
        assert passphrase_of(set_to(f"file:{file}"), var) == SECRET
    else:
        with pytest.raises(ConfigError, match="open to others"):
            passphrase_of(set_to(f"file:{file}"), var)


@pytest.mark.parametrize(("content", "size"), [(b"", 0), (b"short\n", 5), (b"x" * 11, 11), (b"x" * 1025, 1025)])
def test_a_passphrase_has_a_length(var: Path, file: Path, content: bytes, size: int):
    """One of few bytes is guessed, one of thousands is a wrong file; the message tells the length and no more."""
    file.write_bytes(content)
    for place in (f"file:{file}", f"fd:{descriptor(content)}"):
        with pytest.raises(ConfigError, match=rf"audit\.passphrase: a passphrase has 12 to 1024 bytes, not {size}$"):
            passphrase_of(set_to(place), var)


def test_with_the_embedded_database_one_is_made_for_trying(var: Path):
    """The first start makes it under secrets, closed to others, and says what it is; later starts find it."""
    assert known_passphrase(load_settings(), var) is None
    with structlog.testing.capture_logs() as logs:
        made = passphrase_of(load_settings(), var)
        assert made == passphrase_of(load_settings(), var) == known_passphrase(load_settings(), var)

    assert (var / "secrets" / "audit-passphrase").stat().st_mode & 0o777 == 0o600
    assert len(made) >= 43
    assert [(line["event"], line["log_level"]) for line in logs] == [("audit_keys_for_trying", "info")]
    assert made.decode() not in str(logs)


def test_a_damaged_one_is_named_by_its_file(var: Path):
    """Nobody set anything, so it is the file that is wrong, and to be put back."""
    (var / "secrets").mkdir(mode=0o700)
    (var / "secrets" / "audit-passphrase").touch(0o600)
    for ask in (passphrase_of, known_passphrase):
        with pytest.raises(ConfigError, match=r"/secrets/audit-passphrase: a passphrase has 12 to 1024 bytes, not 0$") as refused:
            ask(load_settings(), var)
        assert refused.value.advice == "Put the file back from your backup."


def test_a_file_that_is_not_there_is_named_with_its_setting(var: Path):
    """What is to be corrected is the setting or option, and the message says which."""
    with pytest.raises(ConfigError, match=r"^audit\.passphrase: /nowhere/x: No such file or directory$") as refused:
        passphrase_of(set_to("file:/nowhere/x"), var)
    assert refused.value.advice == "Name a file that is there and that this user may read with audit.passphrase."
    with pytest.raises(ConfigError, match=r"^--key-passphrase: /nowhere/x: No such file"):
        read_passphrase("--key-passphrase", "file:/nowhere/x")


def test_a_lost_one_is_not_made_anew(var: Path):
    """Where keys are and their passphrase is gone, a new one would open nothing: the message says what is missing."""
    (var / "audit-keys" / "signers").mkdir(parents=True)
    (var / "audit-keys" / "signers" / "0001.pem").touch()

    with pytest.raises(ConfigError, match=r"secrets/audit-passphrase: missing, so nobody can open the keys"):
        passphrase_of(load_settings(), var)
    assert not (var / "secrets").exists()


def test_with_a_database_of_your_own_it_must_be_set(var: Path):
    """Without a setting nothing is made, and the remedy is told."""
    for ask in (passphrase_of, known_passphrase):
        with pytest.raises(ConfigError, match=r"audit\.passphrase: not set") as refused:
            ask(load_settings(overrides=(OWN_DATABASE,)), var)
        assert "file:PATH" in refused.value.advice


def test_a_passphrase_never_stands_in_the_settings():
    """A value that is neither file: nor fd: is refused and not repeated."""
    with pytest.raises(ConfigError) as refused:
        set_to(SECRET.decode())
    with pytest.raises(ConfigError) as refused_too:
        read_passphrase("--key-passphrase", SECRET.decode())

    assert SECRET.decode() not in f"{refused.value} {refused.value.advice} {refused_too.value} {refused_too.value.advice}"


def test_the_one_of_a_foreign_key_may_be_short(file: Path):
    """What a key that is brought was encrypted with is not ours to judge."""
    file.write_bytes(b"x\n")

    assert read_passphrase("--key-passphrase", f"file:{file}") == b"x"
    assert read_passphrase("--key-passphrase", f"fd:{descriptor(b'y')}") == b"y"
