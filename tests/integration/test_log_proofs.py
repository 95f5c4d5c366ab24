"""Proofs from the log in a real PostgreSQL: each leads to the signed root, and reads little of a log of any size."""

import pytest

from app.audit.format.checkpoint import key_id, open_note
from app.audit.format.leaf import leaf_hash
from app.audit.format.merkle import is_consistent, root_by_inclusion
from app.audit.reading import proofs
from app.audit.reading.checkpoints import NoCheckpoint, SequencerSilent
from app.audit.reading.entries import NotInLog
from app.audit.reading.hashes import LogDamaged
from app.errors import BadRequest
from app.signing.sm2 import PublicKey
from tests.fixtures.log import GrownLog

MOST_ROWS = 2 * 255 + 255 + 5
"""Of a log of less than 256 * 256 entries: both ends of its lowest eight levels, one of the next, and entry, checkpoint, certificates."""
MOST_STATEMENTS = 5


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 700])
async def test_every_entry_is_proven(grown_log: GrownLog, rows_read, size: int):
    """The proof of each entry leads from its bytes to the root that the checkpoint signs, from a few hundred rows."""
    await grown_log.grow(size)
    await grown_log.sign()
    key = grown_log.keys.certificate
    async with grown_log.engine.connect() as connection:
        for seq in range(size):
            rows_read()
            proof = await proofs.inclusion(connection, seq)
            statements, rows = rows_read()

            leaf = leaf_hash(proof.entry.leaf.text)
            said, _ = open_note(
                proof.checkpoint.note,
                proof.checkpoint.tree_head.origin,
                {key_id(proof.checkpoint.tree_head.origin, key.spki): PublicKey(key.spki)},
            )
            assert (said.size, said.root) == (size, root_by_inclusion(leaf, seq, size, proof.path))
            assert proof.certificate == key
            assert statements <= MOST_STATEMENTS
            assert rows <= MOST_ROWS


async def test_an_entry_is_proven_under_older_checkpoints_too(grown_log: GrownLog):
    """A reader who kept an older checkpoint gets a proof to its root."""
    sizes = [3, 256, 300]
    for size in sizes:
        await grown_log.grow(size - await grown_log.add())
        await grown_log.sign()

    for size in sizes:
        proof = await grown_log.log.inclusion(2, size, operator="auditor")
        assert root_by_inclusion(proof.entry.leaf_hash, 2, size, proof.path) == proof.checkpoint.tree_head.root
        assert proof.checkpoint.size == size


async def test_every_pair_of_checkpoints_is_proven(grown_log: GrownLog):
    """The log of each checkpoint begins the log of each later one."""
    sizes = [1, 2, 3, 255, 256, 257, 511, 512, 600]
    for size in sizes:
        await grown_log.grow(size - await grown_log.add())
        await grown_log.sign()

    for old_size in sizes:
        for new_size in [size for size in sizes if size >= old_size]:
            proof = await grown_log.log.consistency(old_size, new_size)
            assert is_consistent(old_size, new_size, proof.old.tree_head.root, proof.new.tree_head.root, proof.path)
    assert (await grown_log.log.consistency(1, None)).new.size == 600


async def test_what_no_checkpoint_covers_has_no_proof(grown_log: GrownLog):
    """An empty log, an unsigned entry, an entry that is not there and a size at which nobody signed each say what is missing."""
    with pytest.raises(NotInLog, match="0 entries"):
        await grown_log.log.inclusion(0, None, operator="auditor")
    with pytest.raises(NoCheckpoint, match="nothing of the log is signed"):
        await grown_log.log.checkpoint()
    await grown_log.grow(2)
    with pytest.raises(NoCheckpoint, match="nothing of the log is signed"):
        await grown_log.log.inclusion(0, None, operator="auditor")
    await grown_log.sign()
    await grown_log.grow(1)
    with pytest.raises(NoCheckpoint, match="entry 2 is not under the checkpoint of size 2") as refused:
        await grown_log.log.inclusion(2, None, operator="auditor")
    assert "fresh=true" in refused.value.advice
    with pytest.raises(NotInLog, match="3 entries"):
        await grown_log.log.inclusion(3, None, operator="auditor")
    with pytest.raises(NoCheckpoint, match="at 1 entries"):
        await grown_log.log.inclusion(0, 1, operator="auditor")
    await grown_log.sign()
    with pytest.raises(BadRequest, match="from"):
        await grown_log.log.consistency(3, 2)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM audit.leaf WHERE seq = 5",
        "DELETE FROM audit.subtree WHERE index = 0",
        "UPDATE audit.leaf SET leaf_hash = chain_hash WHERE seq = 5",
        "UPDATE audit.subtree SET hash = decode(repeat('ab', 32), 'hex')",
        "UPDATE audit.checkpoint SET note = 'nothing'",
        "DELETE FROM audit.certificate WHERE role = 'signer'",
    ],
)
async def test_a_damaged_log_proves_nothing(grown_log: GrownLog, damage: str):
    """No proof leaves that would not lead to the signed root: the answer says that the log is damaged."""
    await grown_log.grow(300)
    await grown_log.sign()
    await grown_log.damage(damage)
    near, far = (4, 290)  # each needs what is damaged, but for the leaf's neighbours

    with pytest.raises(LogDamaged):
        await grown_log.log.inclusion(near if "leaf" in damage else far, None, operator="auditor")
    if "leaf" in damage:
        with pytest.raises(LogDamaged):
            await grown_log.log.inclusion(5, None, operator="auditor")


async def test_nobody_waits_long_for_a_sequencer_that_is_away(grown_log: GrownLog):
    """A fresh checkpoint is refused in two seconds where nobody signs, and given at once where the newest covers all there is."""
    await grown_log.grow(1)
    await grown_log.sign()
    assert (await grown_log.log.checkpoint(renewed=True)).checkpoint.size == 1

    await grown_log.grow(1)
    with pytest.raises(SequencerSilent, match="2 entries"):
        await grown_log.log.checkpoint(renewed=True)
