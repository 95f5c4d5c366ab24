"""A child's line becomes an event: its own where it is one, a line of text where it is not."""

import logging

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from app.child_output import Event, event_of, write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)


def test_a_line_of_structlog_is_its_own_event():
    """Event, level and fields stand where the child put them."""
    line = '{"event": "config.refused", "level": "warning", "problem": "kind"}'

    assert event_of(line, logging.INFO) == Event("config.refused", logging.WARNING, {"problem": "kind"})


def test_a_line_of_opa_is_its_own_event():
    """What OPA calls msg is the event."""
    line = '{"level":"error","msg":"Bundle load failed","name":"sluice"}'

    assert event_of(line, logging.INFO) == Event("Bundle load failed", logging.ERROR, {"name": "sluice"})


@pytest.mark.parametrize(
    "line",
    [
        "LOG:  database system is ready",
        "",
        "17",
        "[1, 2]",
        '{"event": "without a level"}',
        '{"event": "x", "level": "loud"}',
        '{"event": 3, "level": "info"}',
        '{"level": "info"}',
        '{"event": "cut off", "level": "in',
    ],
)
def test_any_other_line_is_text(line):
    """What names no event or no level that we know is kept as it is, at the child's level."""
    assert event_of(line, logging.DEBUG) == Event("child_line", logging.DEBUG, {"line": line})


@given(st.dictionaries(st.sampled_from(["event", "msg", "level", "self", "args", "child", "exc_info", "name"]) | st.text(max_size=5), JSON))
def test_no_line_breaks_the_log(document):
    """Whatever fields a child invents, the line is written under the child's name, at most at the level allowed."""
    with capture_logs() as events:
        write("opa", event_of(orjson.dumps(document).decode(), logging.INFO), logging.INFO)

    assert [event["child"] for event in events] == ["opa"]
    assert events[0]["log_level"] in ("debug", "info")
