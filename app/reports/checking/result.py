"""What checking a file of a night's reports finds. Pure."""

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
NOT_CHECKED: frozenset[Cause] = frozenset({"unreadable", "root"})


@dataclass(frozen=True, slots=True)
class Result:
    """What was found of one file; of a manifest, of each file that it names, too."""

    file: str
    """Its name, without the folder."""
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
    """The id of the reports that a manifest is of."""
    files: tuple["Result", ...] = ()
    """Of a manifest: the files that it names, in its order."""

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


def worst(whole: Result) -> Result:
    """`whole`, with the verdict of the first of its files that is not valid where it has none of its own: tampered before unchecked."""
    if whole.verdict != "valid":
        return whole
    for verdict in ("tampered", "unchecked"):
        for part in whole.files:
            if part.verdict == verdict:
                return replace(whole, verdict=part.verdict, cause=part.cause, words=f"{part.file}: {part.words}")
    return whole
