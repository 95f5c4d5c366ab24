"""URLs of an operator's own server are read strictly and never shown with their passwords."""

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from app.database import DatabaseDown, DatabaseUrls, conninfo, create_engine, database_down, external_urls, url_of
from app.errors import ConfigError
from app.setting_sections import DatabaseSettings
from app.settings import load_settings

COMPLETE = {
    "url": "postgresql://r:one@db/sluice",
    "owner_url": "postgresql://o:two@db/sluice",
    "intake_url": "postgresql://i:three@db/sluice",
    "log_url": "postgres://l:four@db/sluice",
}


def test_each_duty_has_its_own_url():
    """The four settings become the four URLs, all with the driver that Sluice uses."""
    assert external_urls(DatabaseSettings(**COMPLETE)) == DatabaseUrls(
        registry="postgresql+psycopg://r:one@db/sluice",
        owner="postgresql+psycopg://o:two@db/sluice",
        intake="postgresql+psycopg://i:three@db/sluice",
        log="postgresql+psycopg://l:four@db/sluice",
    )


@pytest.mark.parametrize("missing", ["owner_url", "intake_url", "log_url"])
def test_a_missing_url_is_named(missing):
    """What is missing is named, with the ways to give it, before anything connects."""
    with pytest.raises(ConfigError, match=rf"database\.{missing}: missing") as refused:
        external_urls(DatabaseSettings(**COMPLETE | {missing: ""}))
    assert f"SLUICE_DATABASE__{missing.upper()}" in refused.value.advice


def test_a_file_may_hold_the_url(tmp_path):
    """file:PATH is read, as secrets are mounted, its newline ignored."""
    (tmp_path / "owner").write_text("postgresql://o:two@db/sluice\n")

    urls = external_urls(DatabaseSettings(**COMPLETE | {"owner_url": f"file:{tmp_path / 'owner'}"}))

    assert urls.owner == "postgresql+psycopg://o:two@db/sluice"


def test_a_file_that_is_no_text_is_named(tmp_path):
    """A file that is not UTF-8 is named with its setting."""
    (tmp_path / "owner").write_bytes(b"\xff")

    with pytest.raises(ConfigError, match=rf"database\.owner_url: {tmp_path}/owner: not UTF-8"):
        external_urls(DatabaseSettings(**COMPLETE | {"owner_url": f"file:{tmp_path / 'owner'}"}))


def test_a_missing_file_is_named(tmp_path):
    """A file that is not there is named with its setting."""
    with pytest.raises(ConfigError, match=rf"database\.owner_url: {tmp_path}/absent: No such file"):
        external_urls(DatabaseSettings(**COMPLETE | {"owner_url": f"file:{tmp_path / 'absent'}"}))


@pytest.mark.parametrize(("value", "said"), [("s3cret", "not a URL"), ("mysql://u:s3cret@db/x", "mysql is not supported")])
def test_a_wrong_url_is_refused_without_being_shown(value, said):
    """An error about a URL never repeats it: it holds a password."""
    with pytest.raises(ConfigError, match=rf"database\.url: {said}") as refused:
        external_urls(DatabaseSettings(**COMPLETE | {"url": value}))
    assert "s3cret" not in f"{refused.value} {refused.value.advice}"


def test_no_representation_shows_a_password():
    """Neither URLs nor settings nor a pool print a password."""
    settings = DatabaseSettings(**COMPLETE)
    shown = f"{external_urls(settings)!r} {settings!r} {load_settings()!r} {create_engine(external_urls(settings).registry, settings)!r}"

    assert not [word for word in ("one", "two", "three", "four") if f":{word}@" in shown]
    assert "r:***@db" in shown


def test_a_socket_url_survives_odd_characters(tmp_path):
    """Passwords and folders with reserved characters reach the driver as they are."""
    url = url_of("sluice_log", "p@ss/w:rd% '+", "sluice", tmp_path / "a b&c+d")

    assert conninfo_to_dict(conninfo(url)) == {
        "user": "sluice_log",
        "password": "p@ss/w:rd% '+",
        "dbname": "sluice",
        "port": "5432",
        "host": f"{tmp_path}/a b&c+d",
    }


def test_a_full_disk_of_the_database_is_no_wrong_url():
    """The server's own line and the remedy for it; any other failure is told as what it is called, with what to look at."""
    full = database_down(
        psycopg.errors.DiskFull("could not extend file: No space left on device\nHINT: Check free disk space."), "DiskFull"
    )
    other = database_down(psycopg.OperationalError("connection to 10.0.0.1 failed"), "OperationalError")

    assert full.message == "PostgreSQL: could not extend file: No space left on device"
    assert full.advice.startswith("Make room on the disk of the database")
    assert (other.message, other.advice) == ("PostgreSQL: OperationalError", DatabaseDown.hint)
    assert database_down(psycopg.OperationalError("no route to host\n")).message == "PostgreSQL: no route to host"
