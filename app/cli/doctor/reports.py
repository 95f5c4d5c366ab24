"""Whether the nightly reports can be made here: what they are set in, what they say, where they go, who signs them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import nearest
from app.cli.doctor.report_keys import report_keys
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.cli.shelved_nights import LogSays
    from app.reports.clauses.loading import Clauses
    from app.reports.content.register import Register
    from app.reports.shelf.compared import Manifests
    from app.settings import Settings

MOST_NIGHTS = 31
"""As many as `sluice report list` shows."""
CHECKED_WHOLE = 3
"""Of them; the rest is compared with the log alone: hashing a month of large nights takes minutes."""


def reports(settings: "Settings", var: Path) -> Iterator[Finding]:
    """Clauses and register, the folder, the keys, and who makes the reports."""
    says = _log_says(settings, var)
    yield _wording(settings)
    yield _shelf(settings, var, says.made if says else {})
    yield report_keys(settings, var, says)
    yield _log_root(settings, var)
    yield _made_by(settings)


def _log_says(settings: "Settings", var: Path) -> "LogSays | None":
    """None where the log cannot be asked, which other findings tell."""
    from app.cli.shelved_nights import ask_log
    from app.errors import DependencyDown

    try:
        return ask_log(settings, var)
    except (ConfigError, DependencyDown):
        return None


def font(settings: "Settings") -> Finding:
    """Whether the font of the reports is there and has every character of their wording; else serve runs, and no report is made."""
    from app.reports.layout.font import Font, FontRefused, check_template, font_file

    try:
        opened = Font(font_file(settings.font))
        check_template(opened, _said(settings))
    except FontRefused as error:
        return Finding("font", "fail" if settings.font else "warn", error.message.removeprefix("font: "), error.advice)
    return Finding("font", "ok", f"{opened.title}, {opened.path}")


def _said(settings: "Settings") -> Iterator[str]:
    """All that reports say by themselves; without clauses and register where these are wrong, which is a finding of its own."""
    from app.reports.content.texts import template_texts
    from app.reports.subjects.binding import wording_texts

    yield from wording_texts()
    with suppress(ConfigError):
        yield from template_texts(*_read(settings))


def _read(settings: "Settings") -> "tuple[Clauses, Register]":
    from app.reports.clauses.loading import load_clauses
    from app.reports.clauses.measures import MEASURES
    from app.reports.content.register import load_register

    given = settings.report
    clauses = load_clauses(MEASURES, Path(given.clauses) if given.clauses else None)
    return clauses, load_register(Path(given.register_file) if given.register_file else None)


def _wording(settings: "Settings") -> Finding:
    try:
        clauses, register = _read(settings)
    except ConfigError as error:
        return Finding("clauses", "fail", f"{error.message}; no report is made", error.advice)
    judged = len(clauses.mlps) + len(clauses.gdpr)
    return Finding("clauses", "ok", f"{judged} clauses; register version {register.version}, {len(register.activities)} activities")


def _shelf(settings: "Settings", var: Path, made: "Manifests") -> Finding:
    from app.reports.shelf.shelf import Shelf, ShelfDown, shelf_folder

    folder = shelf_folder(settings.report.path, var).absolute()
    try:
        nights = len(Shelf(folder).reports())
        wrong = _wrong(settings, var, made)
    except ShelfDown as error:
        return Finding("reports", "fail", error.message, error.advice)
    if not os.access(nearest(folder), os.W_OK | os.X_OK):
        return Finding("reports", "fail", f"{folder}: this user may not write there", "Let it, or name another folder with report.path.")
    if wrong:
        remedy = (
            "`sluice report list` says why. What is missing or tampered comes back from a backup, or `sluice report nightly --date DAY "
            "--again` makes another beside it; what is unchecked is checked with `sluice report verify`."
        )
        return Finding("reports", "warn", f"{folder}: {nights} nights; {', '.join(wrong)}", remedy)
    return Finding("reports", "ok", f"{folder}: {nights} nights")


def _wrong(settings: "Settings", var: Path, made: "Manifests") -> list[str]:
    """Each of the newest nights that is not known to be what was made, with its state. Raises ShelfDown."""
    from app.cli.shelved_nights import states_of

    states = states_of(settings, var, made, most=MOST_NIGHTS, whole=CHECKED_WHOLE)
    return [f"{report} {state.verdict}" for report, state in states.items() if state.verdict != "valid"]


def _log_root(settings: "Settings", var: Path) -> Finding:
    """Under what the log is checked before reports are made of it; the log of an embedded database has its keys beside it."""
    from app.reports.making.log_root import given_root
    from app.setting_sections import EMBEDDED
    from app.signing.keys import keys_folder

    folder = keys_folder(settings, var).absolute()
    try:
        root = given_root(settings.report.log_root, folder)
    except ConfigError as error:
        return Finding("logroot", "fail", f"{error.message}; no report is made", error.advice)
    if root:
        return Finding("logroot", "ok", f"{settings.report.log_root or folder}: {root.fingerprint.hex()}")
    if settings.database.url == EMBEDDED:
        return Finding("logroot", "ok", f"{folder}, made with the log")
    return Finding(
        "logroot",
        "warn",
        f"{folder} has no root of the log's keys, and report.log_root is not set: the first reports call the log unchecked",
        "Set report.log_root to the file that `sluice audit keys export-public --root` prints where the log's keys are.",
    )


def _made_by(settings: "Settings") -> Finding:
    from app.reports.shelf.due import OFF, not_scheduled

    given = settings.report
    if given.at == OFF:
        return Finding("nightly", "ok", "report.at is off: something else runs `sluice report nightly`")
    if why := not_scheduled(settings):
        return Finding(
            "nightly",
            "warn",
            f"{why}; so serve has no reports made",
            "Set it to file:PATH, or report.at to off where something else runs `sluice report nightly`.",
        )
    return Finding("nightly", "ok", f"serve has them made at {given.at} {given.zone} of the day after")
