"""A signature as a further revision of a PDF, by pyHanko: a field that shows nothing, a hole for the signature, and a byte range around it.

Nothing of what was there changes, and nothing may be drawn afterwards: readers would call that tampering.
"""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO

from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.sign.fields import SigFieldSpec, SigSeedSubFilter
from pyhanko.sign.signers.cms_embedder import PdfCMSEmbedder, SigIOSetup, SigObjSetup
from pyhanko.sign.signers.pdf_byterange import SignatureObject

from app.errors import SluiceError


class NotSealed(SluiceError):
    """A file could not be signed, or its signature does not verify; no report is made of it."""

    code = "not_sealed"
    hint = "Look whether its folder has room; `sluice report keys list` says whose keys sign. Then make the night again."


class _Revision(IncrementalPdfFileWriter):
    """What is added to a PDF, and nothing but that: pyHanko would write the time of this machine and itself into what the PDF says of itself."""

    def _update_meta(self) -> None:
        pass


def with_signature(
    pdf: bytes, field: str, at: datetime, *, subfilter: SigSeedSubFilter, digest: str, room: int, sign: Callable[[bytes], bytes]
) -> bytes:
    """`pdf` and a revision with the field `field`, signed as of `at`: `sign` gives the CMS (DER, at most `room` bytes) over a `digest`.

    Raises NotSealed where `pdf` is none or has that field, and what `sign` raises.
    """
    try:
        writer = _Revision(BytesIO(pdf))
        steps = PdfCMSEmbedder(new_field_spec=SigFieldSpec(field)).write_cms(field_name=field, writer=writer)
        next(steps)
        steps.send(SigObjSetup(SignatureObject(timestamp=at, subfilter=subfilter, bytes_reserved=2 * room)))
        prepared, output = steps.send(SigIOSetup(md_algorithm=digest))
    except (PdfError, ValueError, TypeError, KeyError) as error:
        raise NotSealed(f"this PDF takes no signature {field}: {error}") from None
    cms = sign(prepared.document_digest)
    if len(cms) > room:
        raise NotSealed(f"the signature {field} has {len(cms)} bytes, and there is room for {room}")
    steps.send(cms)
    return bytes(output.getvalue())
