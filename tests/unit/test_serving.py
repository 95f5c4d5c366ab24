"""What a start keeps in files of its own, and what a signal does."""

import asyncio
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from app.clock import ManualClock
from app.errors import ConfigError
from app.observability.metrics import Metrics
from app.serving import _kept_token, _Server


def test_the_bundle_token_is_made_once(tmp_path: Path):
    """An OPA of the operator's own goes on with its token after a restart of serve."""
    token = _kept_token(tmp_path / "secrets" / "token")

    assert len(token) == 43
    assert _kept_token(tmp_path / "secrets" / "token") == token


def test_a_token_that_the_operator_wrote_is_taken(tmp_path: Path):
    """A newline at its end, which editors add, does not count."""
    (tmp_path / "token").write_text("sesame\n")

    assert _kept_token(tmp_path / "token") == "sesame"


def test_an_empty_token_is_refused(tmp_path: Path):
    """Nothing is guarded by an empty token: the start ends and names the file."""
    (tmp_path / "token").touch()

    with pytest.raises(ConfigError, match="token: empty"):
        _kept_token(tmp_path / "token")


async def test_a_signal_writes_nothing_where_it_interrupts():
    """A line of the log that is being written would be waited for by its own writer, for ever; the loop says it, once, and drains."""
    drained = asyncio.Event()

    async def drain():
        drained.set()

    server = _Server(SimpleNamespace(app=None, drain=drain), SimpleNamespace(metrics=Metrics()), ManualClock())
    with capture_logs() as lines:
        server.handle_exit(signal.SIGTERM, None)
        server.handle_exit(signal.SIGTERM, None)
        assert lines == []
        await asyncio.wait_for(drained.wait(), 5)

    assert [line["event"] for line in lines] == ["stopping"]
    for task in server._tasks:
        task.cancel()
    await asyncio.gather(*server._tasks, return_exceptions=True)
