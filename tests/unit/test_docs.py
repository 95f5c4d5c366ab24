"""What is written by hand in README.md and docs/: links lead somewhere, commands exist, tables are complete."""

import inspect
import re
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

import pytest

from app.policy.kinds import KINDS
from app.policy.node_answer import SIGNALS
from app.policy.terms import BUCKETS, DIMENSIONS
from app.setting_sections import EngineKind, EngineSettings, GpuSettings
from app.telemetry.device_memory import PROBLEM_OF_CODE
from app.telemetry.view import SIGNAL_FIELDS, NodeState
from docs.generate.commands import commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
COMMAND = re.compile(r"\.venv/bin/sluice((?: [a-z][a-z-]*)+)")
WHY = re.compile(r'why: str = ""\s+"""([^"]+)\."""')
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The places inside a page that a link can name, as code hosts make them of headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Every relative link names a file that is there, and a heading that is in it."""
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if link.startswith("http"):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    """Every `sluice` command that a page tells a reader to run is one."""
    known = {path.removeprefix("sluice ") for path, _ in commands()}
    for words in COMMAND.findall(page.read_text("utf-8")):
        command = words.split()
        assert any(" ".join(command[:length]) in known for length in (1, 2, 3)), words


@pytest.mark.parametrize(
    "name",
    [
        *BUCKETS,
        *DIMENSIONS,
        *SIGNALS,
        *(output for kind in KINDS.values() for output in kind.outputs),
        *(field for kind in KINDS.values() for each in kind.sections.values() for field in each["properties"]),
    ],
)
def test_the_guide_to_rules_is_complete(name):
    """Every output, bucket, dimension and field of the question is named in the guide for authors of rules."""
    assert f"`{name}`" in (ROOT / "docs" / "how-to" / "write-a-rule.md").read_text("utf-8")


def reasons_of_a_node() -> list[str]:
    """What `why` of a node can be, as the code lists it; a missing signal is one for each signal."""
    listed = WHY.search(inspect.getsource(NodeState))
    assert listed is not None
    words = listed[1].split(", ")
    assert "missing:<signal>" in words
    return [word for word in words if "<" not in word] + [f"missing:{signal}" for signal in SIGNAL_FIELDS]


@pytest.mark.parametrize(
    "name",
    [
        *get_args(EngineKind),
        *EngineSettings.model_fields,
        *reasons_of_a_node(),
        *PROBLEM_OF_CODE.values(),
    ],
)
def test_the_guide_to_engines_is_complete(name):
    """Every kind of engine, setting of one, reason why a node is not fresh and problem of a GPU is named in the guide to engines."""
    assert f"`{name}`" in (ROOT / "docs" / "how-to" / "connect-engines.md").read_text("utf-8")


@pytest.mark.parametrize("name", GpuSettings.model_fields)
def test_the_guide_to_engines_names_the_sources_of_device_memory(name):
    """Every setting of GPUs is named in the guide to engines."""
    assert f"gpus.{name}" in (ROOT / "docs" / "how-to" / "connect-engines.md").read_text("utf-8")


def test_every_folder_has_its_line():
    """The house in docs/explanation.md has each room of app/ in it."""
    house = (ROOT / "docs" / "explanation.md").read_text("utf-8")
    rooms = {path.parent.name for path in (ROOT / "app").glob("*/[a-z]*.py")}
    assert {room for room in rooms if f"`app/{room}/`" not in house} == set()


def test_requirements_are_explained():
    """Each requirement that a rule, a page or the code names, such as A2, stands in the list of docs/explanation.md."""
    listed = set(re.findall(r"^\| ([ABC]\d+) \|", (ROOT / "docs" / "explanation.md").read_text("utf-8"), re.MULTILINE))
    sources = [*(ROOT / "app").rglob("*.py"), *(ROOT / "rego").rglob("*.rego"), *(ROOT / "docs").rglob("*.md")]
    named = {row for source in sources for row in re.findall(r"\b[ABC]\d{1,2}\b", source.read_text("utf-8"))}
    assert named <= listed


def test_decisions_are_short_and_listed():
    """Each decision is at most 60 lines and stands in the list."""
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text("utf-8")
    for page in folder.glob("0*.md"):
        assert len(page.read_text("utf-8").splitlines()) <= 60, page.name
        assert f"({page.name})" in listed
