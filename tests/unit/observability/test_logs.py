"""Logging never fails whoever logs."""

import io
import json
import logging

import pytest
import structlog

from app.observability.logs import SteadyStream, configure_logs


@pytest.fixture
def logging_restored():
    """Puts logging back as it was for the tests that come after."""
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")

    def flush(self):
        raise BrokenPipeError


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [Full(), closed()])
def test_a_stream_that_cannot_be_written_loses_lines_and_nothing_else(stream):
    """A full disk and a reader that went away cost the line, never the request or the restart that wanted to log."""
    steady = SteadyStream(stream)

    assert steady.write("line\n") == 0
    steady.flush()


def test_lines_pass_through():
    """What can be written is."""
    stream = io.StringIO()
    SteadyStream(stream).write("line\n")

    assert stream.getvalue() == "line\n"


@pytest.mark.usefixtures("logging_restored")
def test_a_line_of_another_process_keeps_its_time_and_its_process(capsys):
    """What a child has logged is shown when and by whom it was logged, not when we passed it on."""
    configure_logs("info", "json")
    structlog.get_logger(timestamp="2026-01-02T03:04:05Z", process="telemetry").warning("scrape.failed")
    structlog.get_logger().info("ours")
    theirs, ours = map(json.loads, capsys.readouterr().err.splitlines())

    assert theirs == {"event": "scrape.failed", "level": "warning", "process": "telemetry", "timestamp": "2026-01-02T03:04:05Z"}
    assert ours["process"] == "serve"
    assert ours["timestamp"] > "2026-01-02T03:04:05Z"


@pytest.mark.usefixtures("logging_restored")
def test_on_a_terminal_lines_are_text(capsys):
    """Asked for text, a line of another process is text, too."""
    configure_logs("info", "text")
    structlog.get_logger(process="telemetry").warning("scrape.failed", node="vllm-0")

    said = capsys.readouterr().err
    assert "scrape.failed" in said
    assert "{" not in said
