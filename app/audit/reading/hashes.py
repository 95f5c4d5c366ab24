"""Any hash of the log's tree, from what the database keeps of it: leaves, and complete subtrees of every eighth level.

Two statements a proof, and at most 255 rows for each end of each eight levels, however large the log is.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.leaf import node_hash
from app.audit.format.merkle import STORED_LEVELS, Span, Subtree, covering, fold
from app.errors import SluiceError

_LEAVES = """
    SELECT 0 AS level, kept.seq AS index, kept.leaf_hash AS hash
    FROM unnest(%(begins)s::bigint[], %(ends)s::bigint[]) AS span (begin, "end"),
    LATERAL (SELECT seq, leaf_hash FROM audit.leaf WHERE seq >= span.begin AND seq < span."end") AS kept
"""
_SUBTREES = """
    SELECT kept.level, kept.index, kept.hash
    FROM unnest(%(levels)s::smallint[], %(begins)s::bigint[], %(ends)s::bigint[]) AS span (level, begin, "end"),
    LATERAL (SELECT level, index, hash FROM audit.subtree
             WHERE level = span.level AND index >= span.begin AND index < span."end") AS kept
"""
Parameters = dict[str, list[int]]
Ask = Callable[[str, Parameters], Awaitable[Iterable[Sequence[Any]]]]
"""Asks PostgreSQL one statement, whose parameters are spelled as psycopg has them."""


class LogDamaged(SluiceError):
    """The log lacks rows that it had, or they are not what its checkpoint was signed for."""

    code = "log_damaged"
    status = 503
    exit_code = 4
    hint = "Export the log, keep the file, and let `sluice audit verify` name the damage."


async def spans(connection: AsyncConnection, wanted: Sequence[Span]) -> list[bytes]:
    """The hash of each span of leaves, as proofs have them. Raises LogDamaged where the log lacks a part of one."""
    known = await subtrees(connection, (piece for span in wanted for piece in covering(*span)))
    hashes = []
    for span in wanted:
        pieces = [known.get(piece) for piece in covering(*span)]
        there = [piece for piece in pieces if piece is not None]
        if len(there) < len(pieces):
            raise LogDamaged(f"hashes of the entries from {span[0]} to {span[1] - 1} are missing in the log")
        hashes.append(fold(there))
    return hashes


async def subtrees(connection: AsyncConnection, wanted: Iterable[Subtree]) -> dict[Subtree, bytes]:
    """The hashes of complete subtrees; of one that the database lacks a part of, none."""

    async def ask(statement: str, parameters: Parameters) -> Iterable[Sequence[Any]]:
        return await connection.exec_driver_sql(statement, parameters)

    return await found(ask, wanted)


async def found(ask: Ask, wanted: Iterable[Subtree]) -> dict[Subtree, bytes]:
    """The same, however PostgreSQL is asked."""
    wanted = list(wanted)
    parts = list(_merged(_stored_parts(tree) for tree in wanted))
    leaves = [(begin, end) for level, begin, end in parts if level == 0]
    inner = [part for part in parts if part[0] > 0]
    kept: dict[Subtree, bytes] = {}
    if leaves:
        begins, ends = zip(*leaves, strict=True)
        kept |= _kept(await ask(_LEAVES, {"begins": list(begins), "ends": list(ends)}))
    if inner:
        levels, begins, ends = zip(*inner, strict=True)
        kept |= _kept(await ask(_SUBTREES, {"levels": list(levels), "begins": list(begins), "ends": list(ends)}))
    joined = ((tree, _joined(tree, kept)) for tree in wanted)
    return {tree: hashed for tree, hashed in joined if hashed is not None}


_Part = tuple[int, int, int]
"""Level and indexes [begin, end) of stored subtrees."""


def _stored_parts(tree: Subtree) -> _Part:
    """The stored subtrees that make up `tree`: 1 to 128 of the nearest stored level at or below it."""
    above = tree.level % STORED_LEVELS
    return tree.level - above, tree.index << above, (tree.index + 1) << above


def _merged(parts: Iterable[_Part]) -> Iterator[_Part]:
    """The same with neighbours joined and nothing twice."""
    current: _Part | None = None
    for part in sorted(parts):
        if current and part[0] == current[0] and part[1] <= current[2]:
            current = (current[0], current[1], max(current[2], part[2]))
            continue
        if current:
            yield current
        current = part
    if current:
        yield current


def _kept(rows: Iterable[Sequence[Any]]) -> dict[Subtree, bytes]:
    return {Subtree(level, index): bytes(hashed) for level, index, hashed in rows}


def _joined(tree: Subtree, kept: dict[Subtree, bytes]) -> bytes | None:
    level, begin, end = _stored_parts(tree)
    row = [kept.get(Subtree(level, index)) for index in range(begin, end)]
    hashes = [hashed for hashed in row if hashed is not None]
    if len(hashes) < len(row):
        return None
    while len(hashes) > 1:
        hashes = [node_hash(hashes[at], hashes[at + 1]) for at in range(0, len(hashes), 2)]
    return hashes[0]
