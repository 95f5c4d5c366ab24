"""Pseudonyms of subjects and addresses."""

import hashlib
import hmac
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.audit.people.pseudonyms import Pseudonyms
from app.errors import ConfigError


def test_same_key_file_gives_same_pseudonyms(tmp_path: Path):
    """A restart, or a replica with the same secrets, gives a subject the same pseudonym."""
    assert Pseudonyms(tmp_path).subject("a", "alice") == Pseudonyms(tmp_path).subject("a", "alice")


def test_pseudonyms_differ_by_tenant_use_and_installation(tmp_path: Path):
    """Nobody can link a subject across tenants, with an address, or across installations."""
    here, elsewhere = Pseudonyms(tmp_path / "one"), Pseudonyms(tmp_path / "two")
    made = {here.subject("a", "x"), here.subject("b", "x"), here.subject("a", "X"), here.address("a", "x"), elsewhere.subject("a", "x")}

    assert len(made) == 5


def test_pseudonym_is_hmac_sm3_under_a_key_of_the_tenant(tmp_path: Path):
    """The form is `p1:` and HMAC-SM3 under HMAC-SM3(master, tenant), so that a second implementation can make it."""
    (tmp_path / "pseudonym.key").write_bytes(bytes(32))
    tenant_key = hmac.new(bytes(32), b"a", lambda data=b"": hashlib.new("sm3", data)).digest()
    expected = hmac.new(tenant_key, b"subject\0alice", lambda data=b"": hashlib.new("sm3", data)).hexdigest()

    assert f"p1:{expected}" == Pseudonyms(tmp_path).subject("a", "alice")


def test_key_file_is_private(tmp_path: Path):
    """Only the owner reads the key, and no draft of it stays behind."""
    Pseudonyms(tmp_path / "secrets")

    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["pseudonym.key"]
    assert (tmp_path / "secrets" / "pseudonym.key").stat().st_mode & 0o777 == 0o600


def test_starting_together_gives_one_key(tmp_path: Path):
    """Processes that start at the same moment agree on one key."""
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: Pseudonyms(tmp_path).subject("a", "x"), range(8)))

    assert len(made) == 1


def test_damaged_key_stops_the_start(tmp_path: Path):
    """A key file of another length is refused by name, since going on would orphan all earlier pseudonyms."""
    (tmp_path / "pseudonym.key").write_bytes(b"short")

    with pytest.raises(ConfigError, match=r"pseudonym\.key: not a key of 32 bytes"):
        Pseudonyms(tmp_path)


def test_missing_sm3_is_said_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where OpenSSL lacks SM3 the start says so."""
    monkeypatch.setattr(hashlib, "algorithms_available", {"sha256"})

    with pytest.raises(ConfigError, match="lacks SM3"):
        Pseudonyms(tmp_path)


def test_unreadable_folder_is_said_clearly(tmp_path: Path):
    """A secrets path that is a file is a ConfigError that names it."""
    (tmp_path / "secrets").write_text("")

    with pytest.raises(ConfigError, match="secrets"):
        Pseudonyms(tmp_path / "secrets")
