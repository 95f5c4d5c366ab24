"""Which configured model a page's readings belong to, where the engine knows it under another name."""

import pytest

from app.telemetry.poller import by_configured_name
from app.telemetry.snapshot import Reading

ONE, TWO = Reading(kv_ratio=0.1, waiting=1), Reading(kv_ratio=0.2, waiting=2)


@pytest.mark.parametrize(
    ("models", "told", "wanted"),
    [
        (("m",), {"m": ONE}, {"m": ONE}),
        (("m",), {"/data/m": ONE}, {"m": ONE}),
        (("m",), {"": ONE}, {"m": ONE}),
        (("m", "alias"), {"m": ONE}, {"m": ONE, "alias": ONE}),
        (("m",), {"m": ONE, "other": TWO}, {"m": ONE, "other": TWO}),
        (("m",), {"x": ONE, "y": TWO}, {"x": ONE, "y": TWO}),
        (("m",), {}, {}),
    ],
)
def test_a_page_of_one_model_stands_for_all_its_names(models, told, wanted):
    """One model on the page is every configured one; among several nothing is guessed."""
    assert by_configured_name(models, told) == wanted
