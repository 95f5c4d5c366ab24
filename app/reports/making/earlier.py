"""What reports say that were made earlier: those on the shelf whose signature is good, and that are what their folders are called.

When down: a shelf that cannot be read is ShelfDown, and no report is made; a report of it that cannot be read is passed over.
"""

from collections.abc import Iterator

from app.instants import rfc3339
from app.reports.checking.beside import check_beside
from app.reports.checking.source import Unreadable, opened
from app.reports.manifest import MANIFEST, MOST_BYTES, Manifest, NotAManifest
from app.reports.nights.night import Night
from app.reports.shelf.shelf import Shelf
from app.signing.certificates import Certificate


def signed(shelf: Shelf, root: Certificate, begins: str = "") -> Iterator[Manifest]:
    """The manifests that are signed under `root`, of reports whose id begins so, the newest first. Raises ShelfDown."""
    for report in shelf.reports():
        if not report.startswith(begins):
            continue
        path = shelf.path / report / MANIFEST
        try:
            with opened(path) as source:
                good = check_beside(path, source, root).verdict == "valid"
                manifest = Manifest.parse(source.read(0, MOST_BYTES)) if good else None
        except (Unreadable, NotAManifest):
            continue
        if manifest and manifest.report == report:
            yield manifest


def end_before(night: Night, shelf: Shelf, root: Certificate, log_root: Certificate) -> int | None:
    """At which number of the log the newest report of the day before ends, by a manifest that is signed under `root`.

    None where there is none of a log that `log_root` vouches for. Raises ShelfDown.
    """
    before = night.previous()
    while not before.exists:
        before = before.previous()
    said = (rfc3339(before.begin), rfc3339(before.end), before.zone, log_root.fingerprint.hex())
    for manifest in signed(shelf, root, f"{before.name}-"):
        if (manifest.begin, manifest.end, manifest.zone, manifest.log.certificate) == said:
            return manifest.log.end
    return None
