"""SM2 signatures: the standard's, ours, and everything that is almost one."""

import copy
import ctypes
import hashlib
import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest
from asn1crypto.keys import EncryptedPrivateKeyInfo
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ConfigError
from app.signing import libcrypto, sm2
from app.signing.sm2 import KeyRefused, PrivateKey, PublicKey, SigningFailed, der, well_formed
from tests.unit.signing import plain_sm2

# GB/T 32918.5-2017, A.2: the example on the recommended curve.
D = 0x3945208F7B2144B13F36E38AC6D39F95889393692860B51A42FB81EF4DF7C5B8
K = 0x59276E27D506861A16680F3AD9C02DCCEF3CC1FA3CDBE4CE6D54B80DEAC1BC21
X = 0x09F9DF311E5421A150DD7D161E4BC5C672179FAD1833FC076BB08FF356F35020
Y = 0xCCEA490CE26775A52DC6EA718CC1AA600AED05FBF35E084A6632F6072DA9AD13
R = 0xF5A03B0648D2C4630EEAC513E1BB81A15944DA3827D5B74143AC7EACEEE720B3
S = 0xB1B6AA29DF212FD8763182BC0D421CA1BB9038FD1F7F42D4840B69C485BBC1AA
MESSAGE = b"message digest"
E = 0xF0B43E94BA45ACCAACE692ED534382EB17E6AB5A19CE7B31F4486FDFC0D28640

KEY = PrivateKey.generate()


def spki(x: int, y: int) -> bytes:
    """The public key with point (x, y)."""
    return sm2.SPKI_PREFIX + x.to_bytes(32, "big") + y.to_bytes(32, "big")


def pkcs8(d: int, x: int, y: int) -> bytes:
    """The private key `d`, in clear."""
    point = x.to_bytes(32, "big") + y.to_bytes(32, "big")
    sec1 = bytes.fromhex("306b0201010420") + d.to_bytes(32, "big") + bytes.fromhex("a14403420004") + point
    return bytes.fromhex("308187020100301306072a8648ce3d020106082a811ccf5501822d046d") + sec1


EXAMPLE = PublicKey(spki(X, Y))


def samples() -> dict:
    """The standard's example and its negatives; skips where they are not at hand."""
    if not (folder := os.environ.get("SLUICE_SAMPLES")):
        pytest.skip("SLUICE_SAMPLES does not name the folder of samples")
    return json.loads((Path(folder) / "sm2" / "gmt0003_5_annex.json").read_text("utf-8"))


def test_the_standards_example_verifies():
    """The signature of the standard is one, of its message under its key alone."""
    assert EXAMPLE.verify(der(R, S), MESSAGE)
    assert not EXAMPLE.verify(der(R, S), MESSAGE + b".")
    assert not KEY.public.verify(der(R, S), MESSAGE)


def test_the_standards_private_key_has_its_public_key():
    """The example's scalar gives the example's point, and what it signs with any k verifies."""
    key = PrivateKey.load(pkcs8(D, X, Y))

    assert key.spki == spki(X, Y)
    assert EXAMPLE.verify(key.sign(b"another message"), b"another message")
    assert plain_sm2.sign(D, K, E) == (R, S)


def test_all_negatives_of_the_samples_are_refused():
    """Numbers out of range, altered, swapped, of another ID or digest, and each wrong DER: none of seventeen verifies."""
    cases = samples()
    numbers = [(case, int(case["r"], 16), int(case["s"], 16)) for case in cases["negative_derived_here"]]
    other_rules = {"user_id_ascii": plain_sm2.digest((X, Y), MESSAGE, b"12345678"), "skip_z": plain_sm2.bare_digest(MESSAGE)}

    assert len(numbers) + len(cases["der_negative"]) == 17
    for case, r, s in numbers:
        if rule := case.keys() & other_rules.keys():  # the right numbers, looked at by a verifier who hashes something else
            assert not plain_sm2.verifies((X, Y), r, s, other_rules[rule.pop()]), case["name"]
        else:
            assert not EXAMPLE.verify(der(r, s), MESSAGE), case["name"]
    for case in cases["der_negative"]:
        assert not EXAMPLE.verify(bytes.fromhex(case["der"]), MESSAGE), case["name"]


@pytest.mark.parametrize(
    "e",
    [plain_sm2.digest((X, Y), MESSAGE, identity) for identity in (b"", b"12345678", b"ALICE123@YAHOO.COM")]
    + [plain_sm2.bare_digest(MESSAGE)],
    ids=["no ID", "a short one", "an address", "no Z"],
)
def test_another_identity_is_another_signature(e: int):
    """A signature by the right key under another ID, the empty one or without Z does not verify."""
    assert plain_sm2.digest((X, Y), MESSAGE) == E
    assert EXAMPLE.verify(der(*plain_sm2.sign(D, K, E)), MESSAGE)
    assert not EXAMPLE.verify(der(*plain_sm2.sign(D, K, e)), MESSAGE)


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=300))
def test_ours_verify_by_plain_arithmetic(message: bytes):
    """What we sign satisfies the standard's equation, whoever computes it."""
    signature = KEY.sign(message)
    point = (int.from_bytes(KEY.spki[-64:-32], "big"), int.from_bytes(KEY.spki[-32:], "big"))
    r_end = 4 + signature[3]
    r, s = int.from_bytes(signature[4:r_end], "big"), int.from_bytes(signature[r_end + 2 :], "big")

    assert plain_sm2.verifies(point, r, s, plain_sm2.digest(point, message))


@settings(max_examples=80, deadline=None)
@given(st.binary(min_size=1, max_size=200), st.data())
def test_no_single_bit_may_change(message: bytes, data: st.DataObject):
    """A flipped bit of the signature or of the message, wherever, and it is no signature any more."""
    signature = KEY.sign(message)
    one, other = flipped(signature, data), flipped(message, data)

    assert KEY.public.verify(signature, message)
    assert not KEY.public.verify(one, message)
    assert not KEY.public.verify(signature, other)


def flipped(content: bytes, data: st.DataObject) -> bytes:
    """`content` with one bit changed."""
    bit = data.draw(st.integers(0, 2**16)) % (8 * len(content))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@settings(max_examples=120, deadline=None)
@given(st.integers(-(2**256), 2**257), st.integers(-(2**256), 2**257))
def test_well_formed_is_two_numbers_in_range(r: int, s: int):
    """The canonical DER of r and s is well formed exactly where both are from 1 to n-1."""
    encoded = b"".join(
        b"\x02" + bytes([size]) + number.to_bytes(size, "big", signed=True)
        for number in (r, s)
        for size in [(number if number >= 0 else ~number).bit_length() // 8 + 1]
    )

    assert (0 < r < sm2.ORDER and 0 < s < sm2.ORDER) == well_formed(b"\x30" + bytes([len(encoded)]) + encoded)


@settings(max_examples=120)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_signature_or_not(signature: bytes):
    """Bytes without sense are no signature, and no error either."""
    assert not KEY.public.verify(signature, MESSAGE)


@pytest.mark.parametrize(
    ("what", "signature"),
    [
        ("r and s without DER", R.to_bytes(32, "big") + S.to_bytes(32, "big")),
        ("a trailing byte", der(R, S) + b"\0"),
        ("a trailing byte inside", b"\x30\x47" + der(R, S)[2:] + b"\0"),
        ("a length in two bytes", b"\x30\x81\x46" + der(R, S)[2:]),
        ("an indefinite length", b"\x30\x80" + der(R, S)[2:] + b"\0\0"),
        ("an integer with a leading zero", b"\x30\x47\x02\x22\0" + der(R, S)[4:]),
        ("a negative integer", b"\x30\x45\x02\x20" + der(R, S)[5:]),
        ("a third integer", b"\x30\x49" + der(R, S)[2:] + b"\x02\x01\x01"),
        ("a set in place of a sequence", b"\x31" + der(R, S)[1:]),
        ("nothing", b""),
    ],
)
def test_only_canonical_der_is_taken(what: str, signature: bytes):
    """The standard's own numbers in another form are refused: one signature has one form."""
    assert EXAMPLE.verify(der(R, S), MESSAGE)
    assert not EXAMPLE.verify(signature, MESSAGE)


def test_short_numbers_are_signed_and_verified_too():
    """One signature in 256 has an r or s with a byte less; it is as good as the others."""
    short = next(signature for signature in (KEY.sign(b"%d" % number) for number in range(20_000)) if len(signature) < 70)

    assert well_formed(short)


@pytest.mark.parametrize(
    ("what", "refused"),
    [
        ("a point beside the curve", spki(X, Y ^ 1)),
        ("a coordinate beyond the field", spki(X, Y + plain_sm2.P) if Y + plain_sm2.P < 2**256 else spki(plain_sm2.P, Y)),
        ("zeroes", spki(0, 0)),
        (
            "a compressed point",
            bytes.fromhex("3039301306072a8648ce3d020106082a811ccf5501822d032200") + bytes([2 + Y % 2]) + X.to_bytes(32, "big"),
        ),
        ("the hybrid form", sm2.SPKI_PREFIX[:-1] + bytes([6 + Y % 2]) + spki(X, Y)[len(sm2.SPKI_PREFIX) :]),
        ("the point alone", spki(X, Y)[-65:]),
        ("a trailing byte", spki(X, Y) + b"\0"),
        ("another curve", spki(X, Y).replace(bytes.fromhex("06082a811ccf5501822d"), bytes.fromhex("06082a8648ce3d030107"))),
        ("nothing", b""),
    ],
)
def test_other_public_keys_are_refused(what: str, refused: bytes):
    """A key is an uncompressed point of the named curve; everything else is KeyRefused."""
    with pytest.raises(KeyRefused):
        PublicKey(refused)


def test_a_point_that_begins_with_the_digits_of_its_own_mark_stays_whole():
    """A coordinate whose first bytes are 04, or zero, is a coordinate: nothing is stripped."""
    begins = {}
    point = None
    while not {0x00, 0x04} <= begins.keys():
        point = plain_sm2.add(point, plain_sm2.G)
        begins.setdefault(point[0] >> 248, point)

    for first in (0x00, 0x04):
        assert PublicKey(spki(*begins[first])).spki == spki(*begins[first])


def test_a_private_key_is_opened_by_its_passphrase_alone():
    """Encrypted and opened again it is the same key; another passphrase, a changed byte or clear bytes are KeyRefused."""
    encrypted = KEY.encrypt(b"sesame")

    assert PrivateKey.decrypt(encrypted, b"sesame").spki == KEY.spki
    for wrong, passphrase in (
        (encrypted, b"Sesame"),
        (encrypted[:-1] + bytes([encrypted[-1] ^ 1]), b"sesame"),
        (encrypted[:99], b"sesame"),
    ):
        with pytest.raises(KeyRefused):
            PrivateKey.decrypt(wrong, passphrase)
    with pytest.raises(KeyRefused):
        PrivateKey.decrypt(pkcs8(D, X, Y), b"sesame")


def test_a_guess_of_the_passphrase_is_slow():
    """Private keys are under AES-256-CBC with PBKDF2 over HMAC-SHA256, 600 000 times, and a salt of their own."""
    one, other = (EncryptedPrivateKeyInfo.load(KEY.encrypt(b"sesame"))["encryption_algorithm"] for _ in range(2))

    assert (one.encryption_cipher, one.key_length, one.encryption_mode) == ("aes", 32, "cbc")
    assert (one.kdf, one.kdf_hmac, one.kdf_iterations, len(one.kdf_salt)) == ("pbkdf2", "sha256", 600_000, 16)
    assert one.kdf_salt != other.kdf_salt


@pytest.mark.parametrize("d", [0, 1, D + 1, sm2.ORDER - 1, sm2.ORDER])
def test_a_scalar_of_another_key_or_out_of_range_is_no_key(d: int):
    """A private key that cannot sign for the public key beside it is refused when it is read."""
    with pytest.raises(KeyRefused):
        PrivateKey.load(pkcs8(d, X, Y))


class Doubting:
    """A public key under which the first `doubts` signatures do not verify."""

    def __init__(self, key: PublicKey, doubts: int) -> None:
        self.key, self.doubts, self.asked = key, doubts, 0

    def verify(self, signature: bytes, message: bytes) -> bool:
        self.asked += 1
        return self.asked > self.doubts and self.key.verify(signature, message)


def test_a_signature_that_does_not_verify_is_made_once_more():
    """One bad signature is hidden by the next; after a second bad one nothing is returned."""
    key = PrivateKey.generate()
    real = key.public
    key.public = once = Doubting(real, 1)
    assert real.verify(key.sign(MESSAGE), MESSAGE)
    assert once.asked == 2

    key.public = always = Doubting(real, 9)
    with pytest.raises(SigningFailed):
        key.sign(MESSAGE)
    assert always.asked == 2


def test_threads_share_a_key():
    """Eight threads that sign and verify with one key get what one thread would get."""

    def work(thread: int) -> bool:
        messages = [b"%d %d" % (thread, number) for number in range(40)]
        return all(KEY.public.verify(KEY.sign(message), message) for message in messages)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8


def test_signing_lets_other_threads_run():
    """The library is called without the interpreter's lock."""
    assert not isinstance(libcrypto.load(), ctypes.PyDLL)


class Counted:
    """The library, keeping account of what it handed out and got back."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.out: list[int] = []

    def __getattr__(self, name: str):
        function = getattr(self._library, name)
        if name.endswith("_free"):
            return lambda pointer: (self.out.remove(pointer) if pointer else None, function(pointer))
        if name.endswith(("_new", "_fetch", "_keygen")) or name.startswith(("d2i_", "PKCS8_", "EVP_PKEY2", "EVP_PKCS82")):
            return lambda *arguments: self._kept(function(*arguments))
        return function

    def _kept(self, pointer: int | None) -> int | None:
        self.out.extend([pointer] if pointer else [])
        return pointer


def use_and_misuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, what it is for, and each way to be refused."""
    key = PrivateKey.generate()
    encrypted = key.encrypt(b"sesame")
    assert not PrivateKey.decrypt(encrypted, b"sesame").public.verify(key.sign(MESSAGE), b"other")
    for refused in (
        lambda: PublicKey(spki(X, Y ^ 1)),
        lambda: PrivateKey.load(b"0"),
        lambda: PrivateKey.load(pkcs8(1, X, Y)),
        lambda: PrivateKey.decrypt(b"0", b"sesame"),
        lambda: PrivateKey.decrypt(encrypted, b"other"),
    ):
        with pytest.raises(KeyRefused):
            refused()
    monkeypatch.setattr(sm2, "ID", b"1" * 9000)  # beyond what Z has room for: refused by OpenSSL
    with pytest.raises(SigningFailed):
        key.sign(MESSAGE)


def test_what_openssl_hands_out_it_gets_back(monkeypatch: pytest.MonkeyPatch):
    """After keys, signatures and every kind of refusal, nothing of OpenSSL's memory is left but SM3 itself."""
    counted = Counted(libcrypto.load())
    monkeypatch.setattr(libcrypto, "load", lambda: counted)
    libcrypto.sm3(counted)
    before = list(counted.out)

    use_and_misuse(monkeypatch)

    assert before == counted.out


def test_a_key_shows_and_hands_on_nothing():
    """A key's text is part of its public key; it is neither copied nor pickled."""
    secret = PrivateKey.load(pkcs8(D, X, Y))

    assert f"{secret!r} {secret}" == "<PrivateKey 09f9df311e5421a1> <PrivateKey 09f9df311e5421a1>"
    for hand_on in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            hand_on(secret)


def test_the_self_test_passes_here_and_fails_on_a_wrong_answer(monkeypatch: pytest.MonkeyPatch):
    """A library that calls the standard's signature bad, or any signature good, does not start."""
    sm2.self_test()

    for answer in (False, True):
        monkeypatch.setattr(PublicKey, "verify", lambda *_, answer=answer: answer)
        with pytest.raises(ConfigError, match="fails the standard's example") as refused:
            sm2.self_test()
        assert "SLUICE_LIBCRYPTO" in refused.value.advice


def test_the_self_test_asks_for_the_hash_of_python_too(monkeypatch: pytest.MonkeyPatch):
    """The tree is hashed by Python's own OpenSSL, which may lack SM3 where the one that signs has it."""

    def lacking(name: str, data: bytes = b"") -> NoReturn:
        raise ValueError(f"unsupported hash type {name}")

    monkeypatch.setattr(hashlib, "new", lacking)
    with pytest.raises(ConfigError, match="hashlib uses has no SM3"):
        sm2.self_test()
