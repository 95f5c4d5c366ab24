"""Which configured model a page's readings belong to, where the engine knows it under another name."""

import pytest

from app.telemetry.poller import names_on_page


@pytest.mark.parametrize(
    ("models", "told", "wanted"),
    [
        (("m",), ["m"], {"m": "m"}),
        (("m",), ["/data/m"], {"m": "/data/m"}),
        (("m",), [""], {"m": ""}),
        (("m", "alias"), ["m"], {"m": "m", "alias": "m"}),
        (("m",), ["m", "other"], {"m": "m"}),
        (("m", "alias"), ["m", "other"], {"m": "m"}),
        (("m",), ["x", "y"], {}),
        (("m",), [], {}),
    ],
)
def test_a_page_of_one_model_stands_for_all_its_names(models, told, wanted):
    """One model on the page is every configured one; among several nothing is guessed, and the others are nobody's."""
    assert names_on_page(models, told) == wanted
