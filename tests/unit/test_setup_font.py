"""setup/font.sh, on a machine that has nothing to fetch with."""

import shutil
import subprocess
from pathlib import Path

import pytest

from app.reports.layout.font import FETCHED

SETUP = Path(__file__).parents[2] / "setup"
PROGRAMS = ("bash", "basename", "cp", "cut", "dirname", "mkdir", "mktemp", "mv", "rm", "sha256sum", "touch")


@pytest.fixture
def checkout(tmp_path):
    """A checkout with these scripts and a PATH of the plainest programs."""
    (tmp_path / "setup").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("font.sh", "say.sh"):
        shutil.copy(SETUP / name, tmp_path / "setup")
    for name in PROGRAMS:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    return tmp_path


def run(checkout, **environment):
    return subprocess.run(
        [checkout / "setup" / "font.sh"], env={"PATH": f"{checkout}/bin", **environment}, capture_output=True, text=True, check=False
    )


def test_a_font_that_is_there_is_kept(checkout):
    """Where the right file lies there already, nothing is fetched."""
    (checkout / ".tools").mkdir()
    shutil.copy(FETCHED, checkout / ".tools" / "report-font.ttf")
    ran = run(checkout)
    assert ran.returncode == 0
    assert ran.stderr == "==> the font of the reports is ready: .tools/report-font.ttf\n"
    assert {path.name for path in (checkout / ".tools").iterdir()} == {"report-font.ttf", "report-font.done"}


@pytest.mark.skipif(Path("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc").exists(), reason="this machine has a font of its own")
def test_without_any_source_it_fails_with_the_remedy(checkout):
    """It says what to do, and leaves no file that was not looked at, and no mark that all is done."""
    (checkout / ".tools").mkdir()
    (checkout / ".tools" / "report-font.ttf").write_bytes(b"half a font")
    ran = run(checkout)
    assert ran.returncode == 1
    assert "!!! no font for the reports" in ran.stderr
    assert "set SLUICE_FONT" in ran.stderr
    assert list((checkout / ".tools").iterdir()) == []


def test_a_font_of_the_operator_needs_no_other(checkout):
    """With SLUICE_FONT nothing is fetched."""
    ran = run(checkout, SLUICE_FONT="/fonts/own.ttf")
    assert ran.returncode == 0
    assert ran.stderr == "==> SLUICE_FONT is set: fetching no font\n"


def test_what_pip_brings_is_looked_at(checkout):
    """A file that is not the one of that hash is not taken, whoever gave it."""
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/bash\n[ "$2" = zipfile ] || exit 0\nmkdir -p "$5/zhplot/fonts" && echo forged > "$5/zhplot/fonts/NotoSansSC-Regular.ttf"\n'
    )
    python.chmod(0o755)
    ran = run(checkout)
    assert "NotoSansSC-Regular.ttf is not the file that was looked at" in ran.stderr
    assert "forged" not in {path.read_text("latin-1").strip() for path in (checkout / ".tools").glob("*.ttf")}
