"""SM2 by plain arithmetic from the standard's formulas (GB/T 32918.1, .2): slow, not for secrets, and of no library that we test."""

import hashlib

P = 0xFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000FFFFFFFFFFFFFFFF
A = P - 3
B = 0x28E9FA9E9D9F5E344D5A9E4BCF6509A7F39789F515AB8F92DDBCBD414D940E93
N = 0xFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54123
G = (
    0x32C4AE2C1F1981195F9904466A39C9948FE30BBFF2660BE1715A4589334C74C7,
    0xBC3736A2F4F6779C59BDCEE36B692153D0A9877CC62A474002DF32E52139F0A0,
)
Point = tuple[int, int] | None


def add(one: Point, other: Point) -> Point:
    """The sum of two points; None is the one at infinity."""
    if one is None or other is None:
        return other or one
    if one[0] == other[0] and (one[1] + other[1]) % P == 0:
        return None
    rise, run = (3 * one[0] ** 2 + A, 2 * one[1]) if one == other else (other[1] - one[1], other[0] - one[0])
    slope = rise * pow(run, -1, P) % P
    x = (slope**2 - one[0] - other[0]) % P
    return x, (slope * (one[0] - x) - one[1]) % P


def times(factor: int, point: Point) -> Point:
    """`point` added `factor` times."""
    result: Point = None
    for bit in f"{factor:b}":
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def bare_digest(message: bytes) -> int:
    """What a signer would sign who leaves out Z."""
    return int.from_bytes(hashlib.new("sm3", message).digest(), "big")


def digest(point: tuple[int, int], message: bytes, identity: bytes = b"1234567812345678") -> int:
    """The number e that is signed: SM3 over Z of the signer and the message."""
    numbers = b"".join(number.to_bytes(32, "big") for number in (A, B, *G, *point))
    z = hashlib.new("sm3", (8 * len(identity)).to_bytes(2, "big") + identity + numbers).digest()
    return bare_digest(z + message)


def sign(d: int, k: int, e: int) -> tuple[int, int]:
    """The signature of the number `e` by the private key `d` with the secret number `k`."""
    found = times(k, G)
    assert found is not None
    r = (e + found[0]) % N
    return r, pow(1 + d, -1, N) * (k - r * d) % N


def verifies(point: tuple[int, int], r: int, s: int, e: int) -> bool:
    """Whether (r, s) is a signature of the number `e` by the key with public `point`."""
    if not (0 < r < N and 0 < s < N) or (r + s) % N == 0:
        return False
    found = add(times(s, G), times((r + s) % N, point))
    return found is not None and (e + found[0]) % N == r
