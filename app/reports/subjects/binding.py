"""How a report for one person becomes files: laid out, and signed where there are report keys.

When down: FontRefused, NotSealed or SigningFailed, and no report is made; a time stamp that is not to be had is left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.reports.content.texts import constants
from app.reports.document import Document, Text
from app.reports.layout.font import Font, check_template
from app.reports.layout.pdf import render
from app.reports.manifest import SIGNATURE_SUFFIX, TIME_STAMP_SUFFIX
from app.reports.sealing.sealer import Sealed
from app.reports.subjects import labels, wording
from app.reports.subjects.answer import Answer, Summary
from app.reports.subjects.drafts import Drafts
from app.reports.subjects.pages import document
from app.reports.subjects.signing import Signing


@dataclass(frozen=True, slots=True)
class Binder:
    """Turns one report into a PDF, and adds the signatures."""

    lay_out: Callable[[Document], bytes]
    signing: Signing | None = None

    def bind(self, answer: Answer, summary: Summary, rows: Sequence[Sequence[Text]], drafts: Drafts) -> None:
        """The PDF of the report among its drafts."""
        name, signing = f"{answer.name}.pdf", self.signing
        pdf = self.lay_out(document(answer, summary, rows, root=signing.keys.root.fingerprint.hex() if signing else None))
        if signing is None:
            drafts.add(name, pdf)
            return
        sealed = signing.sealer.pdf(name, pdf, answer.made)
        drafts.add(name, sealed.content)
        _stamp(drafts, name, sealed)
        drafts.add(f"{answer.name}-root.pem", signing.keys.root.pem.encode())

    def sign_beside(self, drafts: Drafts, name: str, at: datetime) -> None:
        """The signature of a draft that is no PDF, beside it."""
        if self.signing is None:
            return
        sealed = self.signing.sealer.beside(drafts.path(name), at)
        drafts.add(name + SIGNATURE_SUFFIX, sealed.content)
        _stamp(drafts, name, sealed)


def laid_out(document: Document, font: Font) -> bytes:
    """The document as PDF. Raises FontRefused where the font lacks characters of the report's own wording."""
    check_template(font, wording_texts())
    return render(document, font).pdf


def wording_texts() -> Iterator[str]:
    """Each text that a report for one person can have beside what it tells."""
    return constants(labels, wording)


def _stamp(drafts: Drafts, name: str, sealed: Sealed) -> None:
    if sealed.time_stamp is not None:
        drafts.add(name + TIME_STAMP_SUFFIX, sealed.time_stamp)
