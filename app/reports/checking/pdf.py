"""Whether a PDF is as its SM2 signature says. Decided on the bytes of the file: no PDF library is trusted with it.

The rules stand in verifier/README.md; the Go verifier and verify.sh have the same. A place /ByteRange [0 A B C] is a signature where
the hole, from byte A to before byte B, is upper-case hex digits between < and >; any other is text that looks like one. Of signatures the one
of SM2 is judged: there is one, and A + C bytes are all but the hole.

So nothing that is passed over can make a changed file valid: only what covers every byte of it can.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.reports.checking.result import Cause, Result, failed, valid
from app.reports.checking.source import PIECE_BYTES, Source
from app.signing import cms
from app.signing.certificates import Certificate
from app.signing.cms import SignatureRefused

HEADER = b"%PDF-"
SM2_DIGITS = b"06082A811CCF55018375"
"""DER of SM2-with-SM3, in hex. Digits have one case, so that not even one bit of them may change."""
MAX_RANGES = 64
"""In one file; ours have one or two."""
MAX_HOLE_DIGITS = 65536
SEQUENCE, INDEFINITE = 0x30, 0x80
_WORD = b"/ByteRange"
_LONGEST = 128
"""No byte range is written longer."""
_RANGE = re.compile(rb"/ByteRange *\[ *0 +([1-9][0-9]{0,14}) +([1-9][0-9]{0,14}) +(0|[1-9][0-9]{0,14}) *\]")
_HOLE = re.compile(rb"<((?:[0-9A-F]{2})+)>")


@dataclass(frozen=True, slots=True)
class Embedded:
    """A signature in a PDF: the hole from `begin` to `end` that has it, and how many bytes after that are signed with all before it."""

    begin: int
    end: int
    after: int
    digits: bytes
    """What is in the hole: hex."""

    @property
    def reaches(self) -> int:
        """The first byte after what is signed."""
        return self.end + self.after

    @property
    def is_sm2(self) -> bool:
        """Whether it is one to be judged."""
        return SM2_DIGITS in self.digits

    @property
    def der(self) -> bytes:
        """The signature without the zeros that fill its hole. Raises SignatureRefused."""
        content = bytes.fromhex(self.digits.decode("ascii"))
        size = _der_size(content)
        if size > len(content) or any(content[size:]):
            raise SignatureRefused("malformed", "what its hole has is not one signature and zeros")
        return content[:size]


class _Refused(Exception):
    def __init__(self, cause: Cause, words: str) -> None:
        self.cause, self.words = cause, words


def check_pdf(name: str, source: Source, root: Certificate) -> Result:
    """What is to be said of the PDF `source`, called `name`, under the given root. Raises Unreadable."""
    others: tuple[str, ...] = ()
    try:
        words, found = _signatures(source)
        others = tuple(f"a signature that is not SM2, over the first {one.reaches} bytes: not judged" for one in found if not one.is_sm2)
        ours = _judged(words, found, source.size)
        signed = cms.verify(ours.der, source.digest("sm3", (0, ours.begin), (ours.end, ours.reaches)), root)
    except _Refused as why:
        return replace(failed(name, why.cause, why.words), others=others)
    except SignatureRefused as error:
        return replace(failed(name, error.cause, error.message), others=others)
    return replace(valid(name, signed, ours.begin + ours.after), others=others)


def sm2_signature(source: Source) -> bytes:
    """The DER of the one SM2 signature of the PDF `source`. Raises SignatureRefused where it has none, and Unreadable."""
    try:
        return _judged(*_signatures(source), source.size).der
    except _Refused as why:
        raise SignatureRefused("malformed", why.words) from None


def _judged(words: int, found: list[Embedded], size: int) -> Embedded:
    """The one SM2 signature, over the whole file."""
    ours = [one for one in found if one.is_sm2]
    if not ours and words > len(found):
        raise _Refused("malformed", "it has a /ByteRange that does not lie around a signature, and no SM2 signature")
    if not ours:
        raise _Refused("unsigned", "it has no SM2 signature")
    if len(ours) > 1:
        raise _Refused("malformed", f"it has {len(ours)} SM2 signatures; ours have one")
    (one,) = ours
    if one.reaches < size:
        raise _Refused("appended", f"{size - one.reaches} bytes follow what was signed")
    if one.reaches > size:
        raise _Refused("malformed", f"it is cut off: {one.reaches - size} bytes of what was signed are missing")
    return one


def _signatures(source: Source) -> tuple[int, list[Embedded]]:
    """How often the file says /ByteRange, well or not, and the signatures in it, in the order of what they reach."""
    if source.read(0, len(HEADER)) != HEADER:  # else a signed CSV with a hole in it, and the text of its callers, would do
        raise _Refused("malformed", "it is no PDF: it does not begin with %PDF-")
    words, named = 0, set[tuple[int, int, int]]()
    for written in _ranges(source):
        words += 1
        if words > MAX_RANGES:
            raise _Refused("malformed", f"it has more than {MAX_RANGES} /ByteRange")
        if match := _RANGE.match(written):
            named.add((int(match[1]), int(match[2]), int(match[3])))
    found = [Embedded(*one, digits) for one in named if (digits := _digits(source, one[0], one[1]))]
    return words, sorted(found, key=lambda one: (one.reaches, one.begin))


def _ranges(source: Source) -> Iterator[bytes]:
    """What stands at each /ByteRange of the file, and some bytes beyond."""
    for begin in range(0, source.size, PIECE_BYTES):
        piece = source.read(begin, begin + PIECE_BYTES + _LONGEST)
        at = piece.find(_WORD)
        while 0 <= at < PIECE_BYTES:  # one that begins later is in the next piece
            yield piece[at : at + _LONGEST]
            at = piece.find(_WORD, at + len(_WORD))


def _digits(source: Source, begin: int, end: int) -> bytes | None:
    """The hex digits that the hole has; None where it is none."""
    if not len("<00>") <= end - begin <= MAX_HOLE_DIGITS + 2 or end > source.size:
        return None
    hole = _HOLE.fullmatch(source.read(begin, end))
    return hole[1] if hole else None


def _der_size(content: bytes) -> int:
    """How many bytes the SEQUENCE at the start of `content` has. Raises SignatureRefused where there is none."""
    header = len(content) >= 2 and content[0] == SEQUENCE and content[1] != INDEFINITE
    if not header:
        raise SignatureRefused("malformed", "what its hole has is no signature")
    if content[1] < INDEFINITE:
        return 2 + content[1]
    begin = 2 + content[1] - INDEFINITE
    return begin + int.from_bytes(content[2:begin], "big")
