"""What a client sent, as it stands in the log: the stored row alone rebuilds the hash, whatever notation numbers and text came in."""

import json
from pathlib import Path

import orjson
import psycopg
import pytest

from app.api.strict_json import loads
from app.audit.format.leaf import Leaf, leaf_hash, sm3
from app.audit.sequencing.sequencer import Sequencer
from app.clock import ManualClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import rows_of
from tests.fixtures.registry import registry_of
from tests.fixtures.whole_log import size_of_whole_log

SENT = rb'{"tpm":100,"qps":1e2,"costs":{"z":2.50,"a":1.0},"rate_factors":{"m":1.250e-1},"concurrency":3}'
PATCH = rb'{"costs":{"z":null,"b":12.5e-1},"qps":10E-1,"concurrency":null}'
REASON = r"a\u0000b"  # six characters of an escape, not the one that it stands for


@pytest.fixture
async def stored(database_urls: DatabaseUrls, sequencer_url: str, tmp_path: Path) -> list[tuple[bytes, bytes, str]]:
    """Leaf hash, body and shelf of a creation and a change, sequenced."""
    engine = create_engine(database_urls.registry, DatabaseSettings())
    registry = registry_of(engine, tmp_path)
    await registry.put("a", loads(SENT), if_match=None, operator=r"op\ud800", reason=REASON)
    await registry.patch("a", loads(PATCH), if_match=1, operator=r"op\ud800", reason=REASON)
    assert (await registry.history("a"))[0].reason == REASON
    await engine.dispose()
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        await Sequencer(ManualClock()).sequence(connection)
    return await rows_of(database_urls.log, "SELECT leaf_hash, body, body.shelf FROM audit.leaf JOIN audit.body USING (seq) ORDER BY seq")


def rebuilt(seq: int, body: bytes) -> bytes:
    """The leaf hash of an entry with this body."""
    said = orjson.loads(body)
    return leaf_hash(Leaf(seq, said["id"], said["recorded"], "d400", sm3(body)).text)


async def test_the_stored_row_alone_rebuilds_its_hash(stored: list[tuple[bytes, bytes, str]], database_urls: DatabaseUrls):
    """Nested objects, numbers in any notation and null come back as the bytes that were hashed."""
    assert [rebuilt(seq, body) for seq, (_, body, _) in enumerate(stored)] == [leaf for leaf, *_ in stored]
    assert await size_of_whole_log(database_urls.owner) == 2


async def test_numbers_stand_in_one_notation(stored: list[tuple[bytes, bytes, str]]):
    """1e2, 1.0, 2.50 and 1.250e-1 are 100, 1, 2.5 and 0.125, as text; no number of an entry has a point or an exponent."""
    before, after = (orjson.loads(stored[1][1])[name] for name in ("before", "after"))

    assert (before["tpm"], before["qps"], before["concurrency"]) == (100, "100", 3)
    assert before["costs"] == [{"model": "a", "value": "1"}, {"model": "z", "value": "2.5"}]
    assert before["rate_factors"] == [{"model": "m", "value": "0.125"}]
    assert (after["costs"], "concurrency" in after) == ([{"model": "a", "value": "1"}, {"model": "b", "value": "1.25"}], False)
    for _, body, _ in stored:
        json.loads(body, parse_float=pytest.fail)


async def test_text_that_looks_like_an_escape_is_kept(stored: list[tuple[bytes, bytes, str]]):
    """A backslash, a u and four digits are six characters, in the operator as in the reason."""
    assert [orjson.loads(body)["operator"] for _, body, _ in stored] == [r"op\ud800"] * 2


@pytest.mark.parametrize(("deepest", "other"), [(b'"1.25"', b'"1.26"'), (b'"0.125"', b'"0.1250"'), (b"\\\\ud800", b"\\\\ud801")])
async def test_any_other_value_is_another_leaf(stored: list[tuple[bytes, bytes, str]], deepest: bytes, other: bytes):
    """A value changed at any depth, or only spelled otherwise, no longer gives the hash that stands."""
    leaf, body, _ = stored[1]

    assert deepest in body
    assert rebuilt(1, body.replace(deepest, other, 1)) != leaf
