"""The pages of docs/reference."""

from pathlib import Path

from docs.generate.commands import cli_page
from docs.generate.entries import entries_page
from docs.generate.errors import errors_page
from docs.generate.http import http_page
from docs.generate.measures import measures_page
from docs.generate.metrics import metrics_page
from docs.generate.rules import reasons_page, rules_page
from docs.generate.settings import settings_page

FOLDER = Path(__file__).resolve().parents[1] / "reference"


def pages() -> dict[str, str]:
    """Text of each file by its name."""
    return {
        "cli.md": cli_page(),
        "errors.md": errors_page(),
        "http.md": http_page(),
        "log-entries.md": entries_page(),
        "measures.md": measures_page(),
        "metrics.md": metrics_page(),
        "reasons.md": reasons_page(),
        "rules.md": rules_page(),
        "settings.md": settings_page(),
    }
