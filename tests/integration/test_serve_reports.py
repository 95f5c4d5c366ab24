"""serve has missed nights made by itself, serves them, and takes nobody down with it when it ends in the middle."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.engine import free_port
from tests.fixtures.serve import UNHURRIED, FirstStart, Serve, copy_of, spawn, write_settings
from tests.fixtures.waiting import wait_until

NIGHT_WITHIN_S = 60.0


@pytest.fixture
def began_earlier(first_start: FirstStart) -> Iterator[Path]:
    """The folder of a serve whose log began two days ago."""
    var = copy_of(first_start.var)
    with contextlib.closing(_Server(var)) as server:
        server.serve.sql("ALTER TABLE audit.leaf DISABLE TRIGGER ALL")
        server.serve.sql("UPDATE audit.leaf SET recorded = recorded - interval '2 days' WHERE seq = 0")
        server.serve.sql("ALTER TABLE audit.leaf ENABLE ALWAYS TRIGGER no_change")
        server.serve.sql("ALTER TABLE audit.leaf ENABLE ALWAYS TRIGGER no_truncate")
    yield var
    shutil.rmtree(var)


class _Server:
    """One that is ready, until it is closed."""

    def __init__(self, var: Path) -> None:
        port = free_port()
        write_settings(var, port, UNHURRIED)
        self.serve: Serve = spawn(var, port, json.loads((var / "dev-keys.json").read_text())).wait_ready()

    def close(self) -> None:
        assert self.serve.stop() == 0


def test_missed_nights_are_made_and_served(began_earlier: Path):
    """Started after two days, serve has both nights made with keys for trying; an auditor finds them valid, and the log has the download.

    Ended while a night is made, it ends in time and leaves nothing half made.
    """
    shelf = began_earlier / "reports"
    with contextlib.closing(_Server(began_earlier)) as server:
        first = wait_until(lambda: [path.name for path in shelf.glob("20*")], NIGHT_WITHIN_S)[0]
        told = server.serve.call("GET", f"/reports/{first}", key="auditor").json
        pdf = server.serve.call("GET", f"/reports/{first}/mlps.pdf", key="auditor")
        (read,) = [entry for entry in server.serve.entries() if entry.get("read") == "report"]
    assert (told["manifest"]["log"]["verdict"], told["manifest"]["counts"]["entries"]) == ("tampered", 0)  # its first entry was moved
    assert (pdf.status, pdf.headers["content-type"], pdf.body[:5]) == (200, "application/pdf", b"%PDF-")
    assert (read["operator"], read["report"], read["file"]) == ("dev-auditor", first, "mlps.pdf")
    assert list(shelf.glob(".making-*")) == []
