"""Signs a night's files: PDFs within, any other file by a signature beside it. What is signed is checked before it is handed on.

Blocking: some milliseconds, and up to ten seconds once where a time stamp authority does not answer. Call it in a thread.

When down: a signature that cannot be made, or that its own check refuses, is NotSealed or SigningFailed, and no report is made. What is
optional (PAdES, time stamps) is left out where it fails, and `troubles` says so, for the manifest.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path

from pyhanko.sign.fields import SigSeedSubFilter

from app.reports.checking.pdf import check_pdf, sm2_signature
from app.reports.checking.source import Source, opened
from app.reports.sealing.pades import Pades
from app.reports.sealing.pdf import NotSealed, with_signature
from app.reports.sealing.timestamps import NoTimeStamp, TimeStampAuthority
from app.setting_sections import ReportSettings
from app.signing import cms
from app.signing.keys import KeyFolder

FIELD = "SM2"
ROOM_BYTES = 1024  # beside the certificate


@dataclass(frozen=True, slots=True)
class Sealed:
    """What signing a file gave."""

    content: bytes = field(repr=False)
    """The signed PDF; of any other file its signature, for FILE.p7s."""
    time_stamp: bytes | None = field(default=None, repr=False)
    """TimeStampResp over the signature, for FILE.tsr; None where there is no authority, or it gave none."""


class Sealer:
    """Signs with the newest signer of `keys`, a folder of report keys that is open."""

    def __init__(self, keys: KeyFolder, pades: Pades | None = None, authority: TimeStampAuthority | None = None) -> None:
        self._keys = keys
        self._pades = pades
        self._authority = authority
        self._troubles: dict[str, None] = {}

    @classmethod
    def of(cls, settings: ReportSettings, keys: KeyFolder) -> "Sealer":
        """As the settings have it. Raises ConfigError."""
        pades = Pades.of(settings.pades_key, settings.pades_certificates)
        return cls(keys, pades, TimeStampAuthority(settings.timestamp_url) if settings.timestamp_url else None)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why what is optional is missing from what was signed so far; empty where nothing is."""
        return tuple(self._troubles)

    def pdf(self, name: str, content: bytes, at: datetime) -> Sealed:
        """The PDF `content`, called `name`, signed as of `at`. Raises NotSealed, SigningFailed."""
        if self._pades:
            content = self._with_pades(self._pades, content, at)
        keys = self._keys
        signed = with_signature(
            content,
            FIELD,
            at,
            subfilter=SigSeedSubFilter.ADOBE_PKCS7_DETACHED,
            digest="sm3",
            room=ROOM_BYTES + len(keys.certificate.der),
            sign=lambda digest: cms.sign(digest, keys.signer, keys.certificate, at),
        )
        source = Source(BytesIO(signed), len(signed))
        if (found := check_pdf(name, source, keys.root)).verdict != "valid":
            raise NotSealed(f"{name}: {found.words}")
        return Sealed(signed, self._time_stamp(cms.read(sm2_signature(source)).signature))

    def beside(self, file: Path, at: datetime) -> Sealed:
        """The signature for `file`, whatever it is, as of `at`. Raises NotSealed, SigningFailed, Unreadable."""
        keys = self._keys
        with opened(file) as source:
            digest = source.digest("sm3")
        signed = cms.sign(digest, keys.signer, keys.certificate, at)
        try:
            signature = cms.verify(signed, digest, keys.root).signature
        except cms.SignatureRefused as error:
            raise NotSealed(f"{file.name}: {error.message}") from None
        return Sealed(signed, self._time_stamp(signature))

    def _with_pades(self, pades: Pades, content: bytes, at: datetime) -> bytes:
        if not pades.not_before <= at <= pades.not_after:
            self._troubles["no PAdES signature: its certificate is not valid at the time of signing"] = None
            return content
        try:
            return pades.sign(content, at, self._authority)
        except NoTimeStamp as error:
            self._missing(error)
            return pades.sign(content, at, None)

    def _time_stamp(self, signature: bytes) -> bytes | None:
        if not self._authority:
            return None
        try:
            return self._authority.stamp(hashlib.sha256(signature).digest())
        except NoTimeStamp as error:
            self._missing(error)
            return None

    def _missing(self, error: NoTimeStamp) -> None:
        self._troubles[f"no time stamp: {error.message}"] = None
