"""The root certificate that whoever checks was given: one, as PEM or DER."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.signing.certificates import Certificate


def root_certificate(path: Path) -> "Certificate":
    """The one certificate in the file `path`. Raises OSError, and NotChecked where it is no such file."""
    from app.audit.verification.report import NotChecked
    from app.signing.certificates import Certificate, CertificateRefused

    data, hint = path.read_bytes(), "Name the root certificate that you were given, as PEM or DER."
    if not data:
        raise NotChecked(f"{path}: the file is empty", hint=hint)
    if data.count(b"-----BEGIN ") > 1:  # nobody could tell which of them vouched
        raise NotChecked(f"{path}: more than one certificate or key is in it: name one certificate", hint=hint)
    try:
        return Certificate.load_pem(data) if b"-----BEGIN" in data else Certificate.load(data)
    except CertificateRefused as error:
        raise NotChecked(f"{path}: {error.message}", hint=hint) from None
