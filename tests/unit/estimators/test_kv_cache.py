"""The size of one token in the KV cache."""

import pytest

from app.estimators.kv_cache import bytes_per_token, tokens_that_fit


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # 2 x 32 x 8 x 128 x 2
        ({"layers": 32, "kv_heads": 8, "head_dim": 128, "kv_bytes": 2}, 131_072),
        # the same with 32 attention heads for KV heads would be four times as much
        ({"layers": 32, "kv_heads": 32, "head_dim": 128, "kv_bytes": 2}, 524_288),
        # half of the first for numbers of one byte
        ({"layers": 32, "kv_heads": 8, "head_dim": 128, "kv_bytes": 1}, 65_536),
        # 2 x 36 x 8 x 64 x 2
        ({"layers": 36, "kv_heads": 8, "head_dim": 64, "kv_bytes": 2}, 73_728),
    ],
)
def test_bytes_per_token(shape: dict[str, int], expected: int) -> None:
    """A token takes the keys and values of its KV heads over all layers."""
    assert expected == bytes_per_token(**shape)


def test_tokens_that_fit_are_what_an_engine_finds() -> None:
    """5.38 GiB hold what an engine printed for this shape, 78 384 tokens, to a tenth of a percent."""
    fit = tokens_that_fit(5.38 * 2**30, bytes_per_token(layers=36, kv_heads=8, head_dim=64, kv_bytes=2))

    assert abs(fit - 78_384) <= 78.4
