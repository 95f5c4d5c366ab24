"""The proof of one entry as plain text, for programs as small as a shell script (after C2SP tlog-proof). Pure.

sluice-audit-proof 1
entry <base64 of the body's bytes>      absent where retention took the body
leaf <base64 of the leaf's bytes>
index <seq>
<base64 of a hash>                      one line for each step, leaf side first
                                        an empty line
<the checkpoint's note>
                                        an empty line
<the signer's certificate as PEM>
"""

import base64
from collections.abc import Sequence

VERSION = 1


def proof_text(leaf: bytes, seq: int, path: Sequence[bytes], note: str, certificate_pem: str, *, body: bytes | None) -> str:
    """The file's text. `body` is None where it is gone; `note` and `certificate_pem` end with a newline of their own."""
    entry = "" if body is None else f"entry {_base64(body)}\n"
    steps = "".join(f"{_base64(step)}\n" for step in path)
    return f"sluice-audit-proof {VERSION}\n{entry}leaf {_base64(leaf)}\nindex {seq}\n{steps}\n{note}\n{certificate_pem}"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
