"""Whether reports can be signed here: the keys are there, and the passphrase opens them, found by day and not when a night is due."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import nearest
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.cli.shelved_nights import LogSays
    from app.settings import Settings

NAME = "reportkeys"


def report_keys(settings: "Settings", var: Path, says: "LogSays | None") -> Finding:
    """Of the keys of reports; `says` is what the log has of reports and of who signs them, None where it cannot be asked."""
    from app.signing.key_files import newest_signer
    from app.signing.keys import keys_folder
    from app.signing.uses import REPORTS

    try:
        folder = keys_folder(settings, var, REPORTS).absolute()
        finding = _opened(settings, var, folder, says) if newest_signer(folder) else _none(settings, folder, says)
    except ConfigError as error:
        return Finding(NAME, "fail", error.message, error.advice)
    return finding


def _opened(settings: "Settings", var: Path, folder: Path, says: "LogSays | None") -> Finding:
    """Whether these may sign, and the passphrase opens the newest, where this user has it. Raises ConfigError."""
    from app import core_dumps
    from app.clock import SystemClock
    from app.reports.making.report_keys import refuse_second
    from app.signing.key_files import read_certificates
    from app.signing.keys import KeyFolder
    from app.signing.passphrase import known_passphrase
    from app.signing.uses import REPORTS

    signers = read_certificates(folder, REPORTS).signers
    refuse_second(folder, signers, says.signers if says else ())
    newest = signers[-1]
    signs = f"{folder}: signs as {newest.subject} until {newest.not_after:%Y-%m-%d}"
    if why := _untried(settings):
        return Finding(NAME, "ok", f"{signs}; not opened: {why}")
    core_dumps.forbid()
    passphrase = known_passphrase(settings, var, REPORTS)
    if passphrase is not None:
        KeyFolder(folder, passphrase, REPORTS).check(SystemClock().utcnow())
    return Finding(NAME, "ok", signs)


def _untried(settings: "Settings") -> str:
    """Why the keys cannot be opened here although they may be good; empty where they can."""
    from app.setting_sections import EMBEDDED

    kind, _, file = settings.report.passphrase.partition(":")
    if kind == "fd":
        return "report.passphrase is a descriptor, which is read once"
    if not kind and settings.database.url != EMBEDDED:
        return "report.passphrase is not set"
    if kind and os.path.lexists(file) and not os.access(file, os.R_OK):
        return f"this user may not read {file}"
    return ""


def _none(settings: "Settings", folder: Path, says: "LogSays | None") -> Finding:
    """There are none: right before the first night, and where another machine makes the reports. Raises ConfigError."""
    from app.reports.making.report_keys import refuse_lost
    from app.reports.shelf.due import OFF
    from app.signing.key_files import read_root, root_file
    from app.signing.uses import REPORTS

    if os.path.lexists(folder) and not folder.is_dir():
        remedy = f"Move it away, or name a folder with {REPORTS.keys_field}."
        return Finding(NAME, "fail", f"{REPORTS.keys_field}: {folder}: is no folder", remedy)
    root = read_root(folder)
    if settings.report.at == OFF and root:
        return Finding(NAME, "ok", f"{folder}: the root alone, to check under: reports are signed elsewhere")
    if says:
        refuse_lost(folder, says.signers, says.signed)
    if root and not root_file(folder).with_suffix(".key").exists():
        remedy = f"`{REPORTS.command} import` takes a signer that it issued, and report.at off is right where others sign.{REPORTS.way_on}"
        return Finding(NAME, "fail", f"{folder}: has the root alone, with no key to make a signer", remedy)
    if nearest(folder) == folder:
        return Finding(NAME, "warn", f"{folder}: has no signer yet", f"{REPORTS.first}; `{REPORTS.command} import` takes yours.")
    return Finding(NAME, "ok", f"{folder}, made when reports are first made")
