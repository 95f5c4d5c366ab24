"""What a start keeps in files of its own."""

from pathlib import Path

import pytest

from app.errors import ConfigError
from app.serving import _kept_token


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
