"""Numbers on the wire."""

import orjson
import pytest

from app.decision.decision import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (50.0, "50"),
        (2.4, "2.4"),
        (0.41666, "0.417"),
        (2.0**53 - 1, "9007199254740991"),
        (1e48, "1e+48"),
        (-(2.0**63), "-9.223372036854776e+18"),
    ],
)
def test_any_number_can_be_written(value, text):
    """Whole numbers have no decimal point; what JSON writers don't take as an integer stays a float."""
    assert orjson.loads(orjson.dumps(number(value))) == pytest.approx(value, rel=1e-2)
    assert str(number(value)) == text
