"""The text of a proof, and the numbers on the page that describes the log's formats."""

import re
from pathlib import Path

from app.audit.format.leaf import GENESIS, chain_hash, leaf_bytes, leaf_hash
from app.audit.format.merkle import EMPTY_ROOT, Frontier
from app.audit.format.proof_file import proof_text

PAGE = Path(__file__).resolve().parents[4] / "docs" / "log-format.md"


def test_a_proof_is_text_in_a_fixed_order():
    """Version, entry, number, one line for each step, then note and certificate after empty lines."""
    text = proof_text(b"{}", 7, [b"\x00" * 3, b"\xff" * 3], "origin\n8\nroot\n\nsigned\n", "PEM\n")

    assert text == "sluice-audit-proof 1\nentry e30=\nindex 7\nAAAA\n////\n\norigin\n8\nroot\n\nsigned\n\nPEM\n"


def test_the_only_entry_of_a_log_has_no_step():
    """Without a step the empty line follows the number at once."""
    assert proof_text(b"{}", 0, [], "note\n", "PEM\n") == "sluice-audit-proof 1\nentry e30=\nindex 0\n\nnote\n\nPEM\n"


def test_the_page_of_formats_has_numbers_that_are_right():
    """Whoever tries another reader with the three entries of the page gets the hashes that stand there."""
    page, frontier, chain = PAGE.read_text("utf-8"), Frontier(), GENESIS
    rows = []
    for seq in range(3):
        leaf = leaf_hash(leaf_bytes(seq, "d365", b'{"id":"%d"}' % seq))
        frontier.append(leaf)
        chain = chain_hash(chain, leaf)
        rows.append((str(seq), leaf.hex(), frontier.root().hex(), chain.hex()))

    assert re.findall(r"^\| (\d) \| `(\w{64})` \| `(\w{64})` \| `(\w{64})` \|$", page, re.MULTILINE) == rows
    assert EMPTY_ROOT.hex() in page
