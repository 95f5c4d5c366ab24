"""What checking found, for people: line by line. Pure."""

from collections.abc import Iterator

from app.reports.checking.result import Result

NOTICE = "SM2-compatible signature; not a certified commercial cryptography product (商用密码产品); key custody is the operator's."


def lines(result: Result) -> Iterator[str]:
    """The lines. Names in a file that nobody has vouched for yet do not steer a terminal: what cannot be printed is escaped."""
    return ("".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line) for line in _lines(result))


def _lines(result: Result) -> Iterator[str]:
    yield _verdict(result)
    if result.signer is not None:
        yield f"  signed by    {result.signer}"
        yield f"  fingerprint  {result.fingerprint} (SM3 of the certificate)"
        yield f"  signed       {result.signed_at}, by the clock of who signed"
    for file in result.files:
        yield f"  {_verdict(file)}"
    for part in result.parts:
        for remark in (*part.others, *part.remarks):
            yield f"remark  {part.file}: {remark}"
    if result.verdict == "valid":
        yield NOTICE


def _verdict(result: Result) -> str:
    return f"{result.verdict}  {result.file}" + (f": {result.cause}: {result.words}" if result.cause else "")
