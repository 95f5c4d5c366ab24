"""The text of a proof, and the numbers on the page that describes the log's formats."""

import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from app.audit.format.leaf import GENESIS, Leaf, chain_hash, leaf_hash
from app.audit.format.merkle import EMPTY_ROOT, Frontier
from app.audit.format.proof_file import proof_text
from app.instants import rfc3339

PAGE = Path(__file__).resolve().parents[4] / "docs" / "log-format.md"


def test_a_proof_is_text_in_a_fixed_order():
    """Version, entry, leaf, number, one line for each step, then note and certificate after empty lines."""
    text = proof_text(b"[]", 7, [b"\x00" * 3, b"\xff" * 3], "origin\n8\nroot\n\nsigned\n", "PEM\n", body=b"{}")

    assert text == "sluice-audit-proof 1\nentry e30=\nleaf W10=\nindex 7\nAAAA\n////\n\norigin\n8\nroot\n\nsigned\n\nPEM\n"


def test_the_only_entry_of_a_log_has_no_step_and_a_purged_one_no_body():
    """Without a step the empty line follows the number at once, and without a body the leaf the version."""
    assert proof_text(b"[]", 0, [], "note\n", "PEM\n", body=None) == "sluice-audit-proof 1\nleaf W10=\nindex 0\n\nnote\n\nPEM\n"


def test_the_page_of_formats_has_numbers_that_are_right():
    """Whoever tries another reader with the three entries of the page gets the hashes that stand there."""
    page, frontier, chain = PAGE.read_text("utf-8"), Frontier(), GENESIS
    rows = []
    for seq in range(3):
        identity, recorded = UUID(int=seq), datetime(2026, 11, 30, 0, 0, seq, tzinfo=UTC)
        body = b'{"id":"%b","kind":"x","recorded":"%b"}' % (str(identity).encode(), rfc3339(recorded).encode())
        leaf = Leaf.of(seq, identity, recorded, "d365", body)
        hashed = leaf_hash(leaf.text)
        frontier.append(hashed)
        chain = chain_hash(chain, hashed)
        rows.append((str(seq), hashed.hex(), frontier.root().hex(), chain.hex()))
        assert seq or f"{body.decode()}\n{leaf.text.decode()}\n" in page

    assert re.findall(r"^\| (\d) \| `(\w{64})` \| `(\w{64})` \| `(\w{64})` \|$", page, re.MULTILINE) == rows
    assert EMPTY_ROOT.hex() in page
