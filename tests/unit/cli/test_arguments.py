"""What is told of a command line before and after its command runs."""

import sys

import pytest

from app.cli import main
from app.cli.arguments import advice_of, refuse_empty
from app.errors import BadRequest, Conflict, NotFound


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["report", "nightly", "--date", ""], "--date"),
        (["report", "nightly", "--date="], "--date"),
        (["report", "subject", "--tenant", "acme", "--out", ""], "--out"),
        (["key", "create", "--name", "a", "--role="], "--role"),
        (["doctor", "--var", ""], "--var"),
        (["key", "revoke", ""], "an argument"),
        ([""], "an argument"),
    ],
)
def test_text_that_is_empty_is_refused(arguments: list[str], what: str):
    """Behind any option of any command, and as an argument; it names which."""
    with pytest.raises(BadRequest) as refused:
        refuse_empty(arguments)
    assert refused.value.message == f"{what}: is empty"


@pytest.mark.parametrize(
    "arguments", [[], ["report", "list", "--var", "v"], ["serve", "--set", "report.font="], ["x", "--set=opa.binary="], ["-"]]
)
def test_a_setting_may_be_emptied(arguments: list[str]):
    """What stands behind the name of a setting may be nothing."""
    refuse_empty(arguments)


def test_a_command_with_an_empty_option_does_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Exit status 2, as for any wrong use, and two lines: a cron line with a variable that is not set must not pass for success."""
    monkeypatch.setattr(sys, "argv", ["sluice", "report", "nightly", "--zone", ""])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "sluice: --zone: is empty\n  Give it a value, or leave it out. Is a variable not set?\n"


def test_what_errors_advise_is_for_who_types(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The pages about requests help nobody at a terminal; advice of its own stays."""
    monkeypatch.setattr(sys, "argv", ["sluice", "report", "nightly", "--again"])
    with pytest.raises(SystemExit):
        main()
    assert "--help behind the command, or docs/reference/cli.md" in capsys.readouterr().err
    for error in (BadRequest("x"), Conflict("x"), NotFound("x")):
        assert "http.md" not in advice_of(error)
        assert advice_of(error) != error.advice
    assert advice_of(BadRequest("x", hint="Write it so.")) == "Write it so."
