"""Whether the nightly reports can be made here."""

from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from app.settings import Settings


def font(settings: "Settings") -> Finding:
    """Whether the font of the reports is there and has Latin and Chinese; without one serve runs, and no report is made."""
    from app.reports.layout.font import Font, FontRefused, font_file

    try:
        opened = Font(font_file(settings.font))
    except FontRefused as error:
        return Finding("font", "fail" if settings.font else "warn", error.message.removeprefix("font: "), error.advice)
    return Finding("font", "ok", f"{opened.title}, {opened.path}")
