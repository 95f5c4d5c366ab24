"""The log says when a node is shut out, why, and when it is open again: once each."""

from structlog.testing import capture_logs

from app.nodes.diary import Diary
from app.telemetry.snapshot import Reading
from app.telemetry.view import NodeState, Standing, View


def view(why: str = "", *rules: str) -> View:
    by = tuple({"rule": rule, "code": "c", "message": "m"} for rule in rules)
    return View(nodes=(NodeState("a", "m", Reading(), 1.0, why, standing=Standing(avoided_by=by)),))


def test_each_change_is_said_once() -> None:
    """Frozen, then avoided by a rule, then open; views in between say nothing, and a node whose page is gone is not open."""
    diary = Diary()
    with capture_logs() as lines:
        for one in (
            view(),
            view("frozen"),
            view("frozen"),
            view("", "isolation"),
            view("", "isolation"),
            view(),
            view("frozen"),
            view("stale"),
            view(),
        ):
            diary.see(one)

    assert [{key: value for key, value in line.items() if key != "log_level"} for line in lines] == [
        {"event": "node.shut_out", "node": "a", "model": "m", "why": "frozen"},
        {"event": "node.shut_out", "node": "a", "model": "m", "why": "avoided", "rules": ["isolation"]},
        {"event": "node.open", "node": "a", "model": "m"},
        {"event": "node.shut_out", "node": "a", "model": "m", "why": "frozen"},
    ]
