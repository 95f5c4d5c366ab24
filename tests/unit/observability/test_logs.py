"""Logging never fails whoever logs."""

import io

import pytest

from app.observability.logs import SteadyStream


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
