"""Texts about people that come by a file or standard input."""

import io
import sys
from pathlib import Path

import pytest

from app.cli.report.written import written
from app.errors import BadRequest

TEXT = "陈伟 asked for the fourth time\nthis week"


def test_a_text_comes_from_a_file_or_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is written is taken without the line ends after it and the mark that some editors put before it; no option is no text."""
    file = tmp_path / "note.txt"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode() + b"\r\n\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode() + b"\n")))

    assert (written(str(file), "--note"), written("-", "--note"), written(None, "--note")) == (TEXT, TEXT, None)


@pytest.mark.parametrize("said", ["Bea has asked again", "Bea\0", "", "Bea" * 2000])
def test_a_text_in_place_of_a_file_is_not_repeated(said: str):
    """Whoever writes the text itself as the option is told how it works, without it."""
    with pytest.raises(BadRequest, match="--note: the file cannot be read") as refused:
        written(said, "--note")
    assert "Bea" not in refused.value.message
    assert "`--note -`" in refused.value.advice


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    """Bytes that are not UTF-8 would be sealed as something else."""
    (tmp_path / "note.txt").write_bytes(b"\xff")

    with pytest.raises(BadRequest, match="--note: is not UTF-8"):
        written(str(tmp_path / "note.txt"), "--note")
