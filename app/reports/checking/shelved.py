"""The state of a finished night on the shelf, as readers of the shelf are told it."""

from collections.abc import Callable
from pathlib import Path

from app.errors import ConfigError
from app.reports.checking.check import check
from app.reports.checking.result import Result
from app.reports.checking.source import Unreadable, opened
from app.reports.manifest import ROOT, SIGNATURE_SUFFIX, TIME_STAMP_SUFFIX
from app.reports.shelf.states import State
from app.signing.certificates import Certificate, CertificateRefused
from app.signing.key_files import read_certificate

MOST_ROOT_BYTES = 1 << 16
"""A root certificate has less than a thousand."""


def checked_under(root: Path) -> Callable[[Path], State]:
    """A function that checks the folder of a night under the root certificate in the file `root`, which is read anew each time.

    A night that is good under another root, which lies in its folder, is `unchecked` and says so in `other_root`: whose a root is that
    comes with what it vouches for, only the log knows.

    No night with a link among its files is valid: what a link leads to is not handed out, and changes unseen.
    """

    def checked(folder: Path) -> State:
        try:
            certificate = read_certificate(root)
        except ConfigError as error:
            return State("unchecked", f"no root certificate of the report keys here: {error.message}")
        found = check(folder, certificate)
        if found.cause == "certificate" and (other := _root_beside(folder)):
            theirs = check(folder, other)
            if theirs.verdict == "valid":
                return _of_this_shelf(folder, theirs, _under(other))
            found = theirs if theirs.verdict == "tampered" else found
        return State(found.verdict, found.words) if found.verdict != "valid" else _of_this_shelf(folder, found, State("valid"))

    return checked


def _under(root: Certificate) -> State:
    fingerprint = root.fingerprint.hex()
    return State("unchecked", f"signed under another root, {fingerprint}", other_root=fingerprint)


def _root_beside(folder: Path) -> Certificate | None:
    """The root certificate that lies in the folder; None where there is none."""
    try:
        with opened(folder / ROOT, follow=False) as source:
            return Certificate.load_pem(source.read(0, MOST_ROOT_BYTES))
    except (Unreadable, CertificateRefused):
        return None


def _of_this_shelf(folder: Path, found: Result, state: State) -> State:
    """`state`, unless what was found is another night's folder under this name, or lies elsewhere in part."""
    if found.report != folder.name:
        return State("tampered", f"it is the report {found.report}, as it was signed, and not that of its name")
    if link := _link_among(folder, found):
        return State("unchecked", f"{link} is a link: no file of this shelf", other_root=state.other_root)
    return state


def _link_among(folder: Path, night: Result) -> str | None:
    """The name of the first link among what belongs to a night that is as it was signed."""
    names = (file.file + suffix for file in night.files for suffix in ("", SIGNATURE_SUFFIX, TIME_STAMP_SUFFIX))
    return next((name for name in names if (folder / name).is_symlink()), None)
