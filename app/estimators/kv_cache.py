"""How much of the KV cache a token takes, from the shape of a model (B6)."""


def bytes_per_token(*, layers: int, kv_heads: int, head_dim: int, kv_bytes: float) -> float:
    """Bytes of keys and values that one token takes over all layers: 2 · layers · kv_heads · head_dim · kv_bytes (B6).

    `kv_heads` are the heads of the cache, fewer than those of attention where heads share keys; `kv_bytes` is the size of
    one number, 2 for FP16 and 1 for FP8.
    """
    return 2 * layers * kv_heads * head_dim * kv_bytes


def tokens_that_fit(free_bytes: float, per_token_bytes: float) -> int:
    """Whole tokens that fit `free_bytes`."""
    return int(free_bytes // per_token_bytes)
