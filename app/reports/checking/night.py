"""Whether a night's folder is as it was made: the manifest by its signature, then every file that it names.

Of each file bytes, SM3 and SHA-256 are as the manifest has them. A PDF is signed within; a signature beside any other file is checked
where there is one: the manifest vouches for what has none. Files that the manifest does not name are told, and not judged.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.reports.checking.beside import check_beside, signature_beside, signature_of
from app.reports.checking.pdf import HEADER, check_pdf, sm2_signature
from app.reports.checking.result import Result, failed, of_night
from app.reports.checking.source import NotThere, Source, Unreadable, opened
from app.reports.checking.stamped import remark_on
from app.reports.manifest import (
    FORM,
    MANIFEST,
    MOST_BYTES,
    PLAIN_NAME,
    ROOT,
    SCRIPT,
    SIGNATURE_SUFFIX,
    TIME_STAMP_SUFFIX,
    FileLine,
    Manifest,
    NotAManifest,
)
from app.signing import cms
from app.signing.certificates import Certificate

_NAME = re.compile(PLAIN_NAME)
_SIGNED_WITHIN = ".pdf"
_BEGIN, _FORM_LINE = b"{\n", b'\n  "form": "' + FORM.partition(" ")[0].encode() + b" "


def check_manifest(path: Path, source: Source, root: Certificate) -> Result:
    """What is to be said of the manifest `source`, which is at `path`, and of the files beside it that it names. Raises Unreadable."""
    found = check_beside(path, source, root)
    if found.verdict != "valid":
        return found
    found = _with_time_stamp(found, path, signature_beside(path))
    try:
        manifest = Manifest.parse(source.read(0, MOST_BYTES))
    except NotAManifest as error:
        return failed(path.name, "unreadable", error.message)
    if refused := _refused_name([line.name for line in manifest.files]):
        return failed(path.name, "malformed", f"it names {refused!r}: no name of a file of its folder, or twice")
    files = tuple(_check_line(path.parent, line, root) for line in manifest.files)
    return of_night(manifest.report, found, files, tuple(_not_named(path.parent, manifest)))


def check_file(path: Path, source: Source, root: Certificate) -> Result:
    """What is to be said of a file alone: a PDF by what is within, any other by what lies beside it. Raises Unreadable.

    A manifest under another name is not valid by its signature: what it names was not looked at.
    """
    if path.suffix == _SIGNED_WITHIN or source.read(0, len(HEADER)) == HEADER:
        found = check_pdf(path.name, source, root)
        return _with_time_stamp(found, path, sm2_signature(source)) if found.verdict == "valid" else found
    found = check_beside(path, source, root)
    if found.verdict != "valid":
        return found
    if _is_manifest(source):
        words = f"it is a night's manifest under another name, so that its files were not checked: name it {MANIFEST}, beside them"
        return failed(path.name, "unreadable", words)
    return _with_time_stamp(found, path, signature_beside(path))


def _is_manifest(source: Source) -> bool:
    """Whether the file has the form of a manifest, of any version; no other file that Sluice signs has such a line."""
    return source.read(0, len(_BEGIN)) == _BEGIN and _FORM_LINE in source.read(0, MOST_BYTES)


def _with_time_stamp(found: Result, path: Path, der: bytes) -> Result:
    remark = remark_on(path, cms.read(der).signature)
    return replace(found, remarks=(*found.remarks, remark)) if remark else found


def _check_line(folder: Path, line: FileLine, root: Certificate) -> Result:
    path = folder / line.name
    try:
        with opened(path) as source:
            if (source.size, source.digest("sm3").hex(), source.digest("sha256").hex()) != (line.bytes, line.sm3, line.sha256):
                return failed(line.name, "digest", "it is not the file that the manifest names: size, SM3 or SHA-256 differ")
            if path.suffix == _SIGNED_WITHIN or os.path.lexists(signature_of(path)):
                return check_file(path, source, root)
            return Result(line.name, "valid", words="as the manifest names it; it has no signature of its own", covers=source.size)
    except NotThere as error:
        return failed(line.name, "missing", error.message)
    except Unreadable as error:
        return failed(line.name, "unreadable", error.message)


def _refused_name(names: list[str]) -> str | None:
    """The first name that leads elsewhere, that stands there twice, or that would be the manifest's own."""
    seen = {MANIFEST}
    for name in names:
        if name in seen or not _NAME.fullmatch(name):
            return name
        seen.add(name)
    return None


def _not_named(folder: Path, manifest: Manifest) -> Iterator[str]:
    named = {MANIFEST} | {line.name for line in manifest.files}
    known = named | {name + end for name in named for end in (SIGNATURE_SUFFIX, TIME_STAMP_SUFFIX)} | {ROOT, SCRIPT}
    try:
        names = sorted(file.name for file in folder.iterdir())
    except OSError as error:  # who may read its files by name may still not list it
        yield f"its folder cannot be listed: {error.strerror}"
        return
    for name in names:
        if name not in known:
            yield f"{name!r} is not named by the manifest: not judged"
