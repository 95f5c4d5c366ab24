"""`sluice report verify` and `sluice report keys`: exit statuses, what is printed, and what is not."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
import typer
from click.testing import Result
from typer.testing import CliRunner

from app.audit.verification.report import NotChecked
from app.cli.audit.keys import app as log_keys_app
from app.cli.report.keys import app as keys_app
from app.cli.report.verify import verify
from app.clock import SystemClock
from app.errors import ConfigError
from app.signing.keys import KeyFolder
from app.signing.uses import REPORTS
from tests.fixtures.signed_reports import CSV, Keys, night
from tests.fixtures.signing import PASSPHRASE

KEYS = Keys.make()
verify_app = typer.Typer()
verify_app.command()(verify)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A night's folder."""
    folder = tmp_path / "2026-11-29-asia-shanghai-1"
    folder.mkdir()
    for name, content in night(KEYS).items():
        (folder / name).write_bytes(content)
    return folder


def checked(*arguments: object) -> Result:
    return CliRunner().invoke(verify_app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", [".", "manifest.json", "mlps.pdf", "decisions.csv"])
def test_what_is_as_it_was_signed_exits_with_0(folder: Path, name: str):
    """A folder, its manifest, a PDF, a CSV; as PEM or DER the root is the same."""
    (folder.parent / "root.der").write_bytes(KEYS.root.der)
    for root in (folder / "root.pem", folder.parent / "root.der"):
        done = checked(folder / name, "--root", root)
        assert (done.exit_code, done.stdout.split()[0]) == (0, "valid")
        assert "not a certified commercial cryptography product" in done.stdout


def test_what_is_not_exits_with_4_and_names_the_cause(folder: Path):
    """The file of the night, and the word for what happened to it."""
    (folder / "decisions.csv").write_bytes(CSV + b"\r\n")
    done = checked(folder, "--root", folder / "root.pem")
    assert done.exit_code == 4
    assert done.stdout.startswith("tampered  2026-11-29-asia-shanghai-1: digest: not all files are valid: decisions.csv (digest)\n")
    assert "\n  valid  manifest.json\n" in done.stdout
    assert "\n  tampered  decisions.csv: digest: " in done.stdout
    assert "not a certified" not in done.stdout


def test_what_cannot_be_checked_exits_with_6(folder: Path):
    """A file that is not there; and a root that is no certificate is an error that says so."""
    missing = checked(folder / "none.pdf", "--root", folder / "root.pem")
    assert (missing.exit_code, missing.stdout.split()[0]) == (6, "unchecked")

    for root in (folder / "none.pem", folder, folder / "mlps.pdf", folder / "log.jsonl"):
        refused = checked(folder, "--root", root).exception
        assert isinstance(refused, NotChecked)
        assert refused.message.startswith(f"--root: {root}: ")
        assert "export" not in refused.advice
        assert refused.exit_code == 6


def test_json_has_what_was_found_of_each_file(folder: Path):
    """For programs: the same fields for the night, its manifest, and each file that this names."""
    done = checked(folder, "--root", folder / "root.pem", "--output", "json")

    found = json.loads(done.stdout)
    assert (found["verdict"], found["report"], found["signer"]) == ("valid", "2026-11-29-asia-shanghai-1", KEYS.certificate.subject)
    assert [(file["file"], file["verdict"], file["cause"]) for file in found["files"]] == [
        (name, "valid", "") for name in ("manifest.json", "mlps.pdf", "gdpr.pdf", "decisions.csv", "log.jsonl")
    ]
    assert set(found) == set(found["files"][0])


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Callable[..., Result]]:
    """Runs `sluice report keys …` on the test's own --var."""
    handlers = logging.getLogger().handlers[:]
    yield lambda *arguments: CliRunner().invoke(keys_app, [*arguments, "--var", str(tmp_path)])
    logging.getLogger().handlers[:] = handlers  # the command's own write to streams that are closed by now
    structlog.reset_defaults()


@pytest.mark.usefixtures("quick_encryption", "forbidden")
def test_keys_of_reports_are_kept_with_the_same_commands(tmp_path: Path, keys: Callable[..., Result]):
    """List, rotate and export-public act on report-keys under --var, and on nothing of the log."""
    (tmp_path / "secrets").mkdir(mode=0o700)
    (tmp_path / "secrets" / "report-passphrase").touch(0o600)
    (tmp_path / "secrets" / "report-passphrase").write_bytes(PASSPHRASE)
    folder = KeyFolder(tmp_path / "report-keys", PASSPHRASE, REPORTS)
    folder.open_or_make(SystemClock().utcnow())

    rotated = keys("rotate")
    listed = json.loads(keys("list", "--output", "json").stdout)
    root = keys("export-public", "--root").stdout

    assert rotated.exit_code == 0, rotated.exception
    assert rotated.stdout.startswith("Sluice report signer ")
    assert [row["state"] for row in listed] == ["root", "replaced", "signs"]
    assert folder.root.pem in root
    assert not (tmp_path / "audit-keys").exists()


@pytest.mark.usefixtures("quick_encryption", "forbidden")
def test_new_keys_are_made_on_request_and_never_over_others(tmp_path: Path, keys: Callable[..., Result]):
    """A root and a signer, with the root's fingerprint for who hands it out; a second time it is refused, and nothing changes."""
    made = keys("init")
    root = KeyFolder(tmp_path / "report-keys", (tmp_path / "secrets" / "report-passphrase").read_bytes(), REPORTS)
    root.open(SystemClock().utcnow())
    before = sorted((path, path.stat().st_mtime_ns) for path in root.path.rglob("*.pem"))

    assert (made.exit_code, made.exception) == (0, None)
    assert f"SM3 fingerprint of the root {root.root.fingerprint.hex()}" in made.stdout
    assert "first set report.log_root: `sluice audit keys export-public --root` prints the file there" in made.stdout
    assert root.maker(root.certificate) is not None
    refused = keys("init").exception
    assert isinstance(refused, ConfigError)
    assert "has keys already" in refused.message
    assert sorted((path, path.stat().st_mtime_ns) for path in root.path.rglob("*.pem")) == before


@pytest.mark.usefixtures("quick_encryption", "forbidden")
def test_keys_whose_private_halves_are_lost_are_moved_away_for_others(tmp_path: Path, keys: Callable[..., Result]):
    """The certificates alone, as of a backup without *.key: `init` names the way, and that way leads to new keys."""
    keys("init")
    folder = tmp_path / "report-keys"
    for key in folder.rglob("*.key"):
        key.unlink()
    refused = keys("init").exception
    assert isinstance(refused, ConfigError)
    assert "where there is none, move the folder away first" in refused.advice

    folder.rename(tmp_path / "away")
    assert keys("init").exit_code == 0
    assert not (folder / "signers" / "0002.pem").exists()


def test_a_log_gets_no_other_root_by_command(keys: Callable[..., Result]):
    """`init` is there for keys alone whose root another can follow."""
    assert CliRunner().invoke(log_keys_app, ["init", "--help"]).exit_code == 2
    assert keys("init", "--help").exit_code == 0


def test_without_keys_of_reports_it_says_how_they_come_to_be(keys: Callable[..., Result]):
    """Not those of the log."""
    refused = keys("list").exception
    assert isinstance(refused, ConfigError)
    assert "sluice report nightly" in refused.advice
