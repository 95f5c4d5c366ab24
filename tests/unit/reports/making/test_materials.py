"""What reports are made with: nothing is made in a font that lacks characters of their own wording."""

from pathlib import Path
from typing import cast

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.clock import ManualClock
from app.reports.layout.font import FontRefused
from app.reports.making.materials import load_materials
from app.setting_sections import ReportSettings
from app.settings import Settings
from app.transaction import Transactions
from tests.fixtures.report_content import unprintable_clauses
from tests.fixtures.signing import MADE

MODELS = Path(__file__).parents[4] / "examples" / "models.yaml"


async def test_wording_that_the_font_lacks_is_refused_before_any_key_is_made(tmp_path: Path):
    """A clause with a character that the font has not is told with that character; no night is begun."""
    report = ReportSettings(clauses=str(unprintable_clauses(tmp_path / "clauses")), keys=str(tmp_path / "keys"))
    with pytest.raises(FontRefused, match=r"lacks characters of the reports' own wording: 😀\[U\+1F600\]"):
        await load_materials(
            Settings(report=report, models=str(MODELS)), tmp_path, ManualClock(MADE), cast(Transactions, None), cast(AsyncEngine, None)
        )
    assert not (tmp_path / "keys").exists()
