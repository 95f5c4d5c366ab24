"""The root certificate that whoever checks was given: one, as PEM or DER."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.signing.certificates import Certificate


def root_certificate(path: Path) -> "Certificate":
    """The one certificate in the file `path`, which --root names. Raises NotChecked where it is no such file."""
    from app.audit.verification.report import NotChecked
    from app.signing.certificates import Certificate, CertificateRefused

    def refused(why: str) -> NotChecked:
        return NotChecked(f"--root: {path}: {why}", hint="Name the root certificate that you were given, as PEM or DER.")

    try:
        data = path.read_bytes()
    except OSError as error:
        raise refused(error.strerror or "it cannot be read") from None
    if not data:
        raise refused("the file is empty")
    if data.count(b"-----BEGIN ") > 1:  # nobody could tell which of them vouched
        raise refused("more than one certificate or key is in it: name one certificate")
    try:
        return Certificate.load_pem(data) if b"-----BEGIN" in data else Certificate.load(data)
    except CertificateRefused as error:
        raise refused(error.message) from None
