"""What checking a file of a night's reports finds. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.instants import rfc3339
from app.signing.cms import Signed

Verdict = Literal["valid", "tampered", "unchecked"]
Cause = Literal["", "unsigned", "malformed", "appended", "digest", "certificate", "signature", "expired", "missing", "unreadable", "root"]
"""In one word why a file is not valid; empty where it is. The same words as of the other verifiers (verifier/README.md).

unsigned     it has no SM2 signature, or none lies beside it
malformed    the signature, its place in the PDF, or a manifest is not in the form that Sluice writes; or the file is cut off
appended     bytes were added after the SM2 signature
digest       the content is not what was signed, or not what the manifest names
certificate  the given root did not issue the certificate in it, or not for signing
signature    it is not by the key of that certificate
expired      it was signed outside of the time of that certificate or its root
missing      the manifest names a file that is not there
unreadable   the file or its form cannot be read here, so that it was not checked
root         what was given as root is none, so that nothing was checked
"""
EXIT_CODES: Mapping[Verdict | Literal["missing"], int] = {"valid": 0, "unchecked": 6, "tampered": 4, "missing": 4}
"""Exit statuses of commands, the gravest last. `missing` is said of a night that the log says was made, and that is not there."""
NOT_CHECKED: frozenset[Cause] = frozenset({"unreadable", "root"})


def gravest(verdicts: Iterable[Verdict | Literal["missing"]]) -> int:
    """The exit status for all of these: 4 before 6 before 0; 0 for none."""
    gravity = list(EXIT_CODES.values())
    return max((EXIT_CODES[verdict] for verdict in verdicts), key=gravity.index, default=0)


@dataclass(frozen=True, slots=True)
class Result:
    """What was found of one file, or of a night and each of its files."""

    file: str
    """Its name, without the folder; of a night its id."""
    verdict: Verdict
    cause: Cause = ""
    words: str = ""
    """The same for people, in a sentence."""
    signer: str | None = None
    """The common name of whoever signed; None where no signature is good."""
    fingerprint: str | None = None
    """SM3 of the signer's certificate, in hex."""
    signed_at: str | None = None
    """By the signer's own clock, RFC 3339."""
    covers: int | None = None
    """How many bytes are signed; those of the signature itself are not."""
    others: tuple[str, ...] = ()
    """Other signatures in a PDF, which are not judged."""
    remarks: tuple[str, ...] = ()
    """What an auditor should know although it is in order."""
    report: str | None = None
    """Of a night: its id."""
    files: tuple["Result", ...] = ()
    """Of a night: its manifest, then the files that this names, in its order."""

    @property
    def parts(self) -> tuple["Result", ...]:
        """It and its files."""
        return (self, *self.files)


def failed(file: str, cause: Cause, words: str) -> Result:
    """The result for a file that is not valid, or that was not checked."""
    return Result(file, "unchecked" if cause in NOT_CHECKED else "tampered", cause, words)


def valid(file: str, signed: Signed, covers: int) -> Result:
    """The result for a file with a good signature."""
    certificate = signed.certificate
    words = f"signed by {certificate.subject!r}, and not changed since"
    return Result(file, "valid", "", words, certificate.subject, certificate.fingerprint.hex(), rfc3339(signed.at), covers)


def of_night(report: str, manifest: Result, files: tuple[Result, ...], remarks: tuple[str, ...]) -> Result:
    """The result for the night `report`: signed as its manifest is, which is good, and not valid where one of `files` is not.

    Its cause is that of the first that was tampered with, else of the first that was not checked; its words name all of them.
    """
    night = replace(manifest, file=report, report=report, files=(manifest, *files), remarks=remarks)
    bad = sorted((file for file in files if file.verdict != "valid"), key=lambda file: file.verdict != "tampered")
    if not bad:
        return night
    words = "not all files are valid: " + ", ".join(f"{file.file} ({file.cause})" for file in bad)
    return replace(night, verdict=bad[0].verdict, cause=bad[0].cause, words=words)
