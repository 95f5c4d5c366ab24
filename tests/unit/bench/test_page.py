"""The page that engines of the benchmark serve."""

import pytest

from app.telemetry.history import History
from app.telemetry.pages import Pages
from app.telemetry.vllm import NAMES
from bench.page import PAGE_BYTES, Page, made_page


def test_made_page_has_the_size_of_a_real_one() -> None:
    """The page has exactly 50 KB."""
    assert len(made_page("m")) == PAGE_BYTES


def test_every_step_changes_the_moving_lines_alone() -> None:
    """From one step to the next the moving lines are new, and no other."""
    page = Page(made_page("m"))
    before, after = (page.at(step).split(b"\n") for step in (1, 2))

    assert len(before) == len(after)
    assert page.moving == sum(one != other for one, other in zip(before, after, strict=True))


def test_page_tells_every_signal() -> None:
    """The product's reader finds each reading on it, new at every step and below the watermarks."""
    page, pages, history = Page(made_page("m")), Pages(NAMES), History()
    first, second = (history.push(pages.read(page.at(step), "text/plain"), step * 100.0)["m"] for step in (1, 2))

    assert first.kv_ratio == 0.3007
    assert second.kv_ratio == 0.3014
    assert None not in (second.waiting, second.running, second.free_tokens)
    assert second.iteration_ms == pytest.approx(20)
