"""SM2 signatures with SM3 (GB/T 32918.2) in the one form that Sluice knows: DER, ID 1234567812345678, public keys uncompressed.

OpenSSL computes; see libcrypto.py. That it verifies is not taken as proof of form: what is not canonical DER of two integers
from 1 to n-1 is refused here, whatever the library's version accepts. Keys may be used by several threads at once.
SM2-compatible; not a certified commercial cryptography product (商用密码产品).

When down: a signature that does not verify under its own key is made once more, then SigningFailed; the caller keeps the last good one.
"""

import contextlib
import ctypes
import hashlib
from collections.abc import Iterator
from typing import Any, NoReturn

from app.errors import ConfigError, SluiceError
from app.signing import libcrypto

ID = b"1234567812345678"  # GB/T 32918.2's default; OpenSSL's own default is empty, and nobody else verifies that
ORDER = 0xFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54123
SPKI_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a811ccf5501822d03420004")
"""Of every public key: id-ecPublicKey, sm2p256v1, and the 04 of an uncompressed point."""
SPKI_BYTES = len(SPKI_PREFIX) + 64
MAX_SIGNATURE_BYTES = 72
ATTEMPTS = 2  # a fault of memory or processor does not come twice; one that does is not outlived by trying
PBKDF2_ITERATIONS = 600_000  # OWASP's figure for HMAC-SHA256; a fifth of a second at each start
SALT_BYTES = 16

_EXAMPLE_KEY = bytes.fromhex(
    "09f9df311e5421a150dd7d161e4bc5c672179fad1833fc076bb08ff356f35020ccea490ce26775a52dc6ea718cc1aa600aed05fbf35e084a6632f6072da9ad13"
)
_EXAMPLE_MESSAGE = b"message digest"
_EXAMPLE_SM3 = "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"
_EXAMPLE_R = 0xF5A03B0648D2C4630EEAC513E1BB81A15944DA3827D5B74143AC7EACEEE720B3
_EXAMPLE_S = 0xB1B6AA29DF212FD8763182BC0D421CA1BB9038FD1F7F42D4840B69C485BBC1AA


class KeyRefused(SluiceError):
    """A public or private key is malformed, not on the SM2 curve, or not opened by its passphrase."""

    code = "key_refused"
    status = 422
    exit_code = 4
    hint = "Sluice takes SM2 keys alone, with the curve named and the point uncompressed: `openssl genpkey -algorithm SM2` makes such."


class SigningFailed(SluiceError):
    """A signature could not be made, or did not verify under its own key, twice in a row; nothing was stored."""

    code = "signing_failed"
    hint = "Suspect the machine's memory or its OpenSSL: `openssl speed sm2` and a memory test tell more. The log goes on once it signs."


class _Key:
    """A key in OpenSSL's memory, freed with this object; never copied, pickled or shown."""

    def __init__(self, pointer: int | None, refusal: str) -> None:
        self._crypto = libcrypto.load()
        self._pointer = pointer
        spki = libcrypto.encoded(self._crypto.i2d_PUBKEY, pointer) if pointer and self._crypto.EVP_PKEY_is_a(pointer, b"SM2") else b""
        self._crypto.ERR_clear_error()
        if not spki.startswith(SPKI_PREFIX) or len(spki) != SPKI_BYTES:
            raise KeyRefused(refusal)
        self.spki = spki
        """The public key as DER SubjectPublicKeyInfo, 91 bytes."""

    def __del__(self) -> None:
        if pointer := self.__dict__.pop("_pointer", None):
            self._crypto.EVP_PKEY_free(pointer)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is neither copied nor pickled")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spki[len(SPKI_PREFIX) :].hex()[:16]}>"

    @contextlib.contextmanager
    def _context(self, init: Any) -> Iterator[int]:
        """A digest context for one message, begun by `init` with SM3 and our ID; freed however the block ends."""
        crypto = self._crypto
        context, settings = crypto.EVP_MD_CTX_new(), crypto.EVP_PKEY_CTX_new(self._pointer, None)
        try:
            if not context or not settings or crypto.EVP_PKEY_CTX_set1_id(settings, ID, len(ID)) <= 0:
                raise SigningFailed("OpenSSL gave no context for SM2")
            crypto.EVP_MD_CTX_set_pkey_ctx(context, settings)
            if init(context, None, libcrypto.sm3(crypto), None, self._pointer) != 1:
                raise SigningFailed("OpenSSL does not begin with SM2")
            yield context
        finally:
            crypto.EVP_MD_CTX_free(context)
            crypto.EVP_PKEY_CTX_free(settings)
            crypto.ERR_clear_error()  # Python's ssl would take what is left there for its own


class PublicKey(_Key):
    """A public key, from DER SubjectPublicKeyInfo with its point uncompressed. Raises KeyRefused, ConfigError."""

    def __init__(self, spki: bytes) -> None:
        if len(spki) != SPKI_BYTES or not spki.startswith(SPKI_PREFIX):
            raise KeyRefused("not an SM2 public key with its point uncompressed")
        super().__init__(libcrypto.parsed(libcrypto.load().d2i_PUBKEY, spki), "the point of this public key is not on the SM2 curve")

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether `signature` is canonical DER and one of `message`. Anything else, r and s in 64 bytes too, is False."""
        if not well_formed(signature):
            return False
        with self._context(self._crypto.EVP_DigestVerifyInit) as context:
            return bool(self._crypto.EVP_DigestVerify(context, signature, len(signature), message, len(message)) == 1)


class PrivateKey(_Key):
    """A private key; the scalar itself never leaves OpenSSL's memory in clear."""

    def __init__(self, pointer: int | None, refusal: str) -> None:
        super().__init__(pointer, refusal)
        # Reading does not look at the scalar. OpenSSL signs for ever with n-1, and in vain with one that is another key's.
        if not self._is_whole():
            raise KeyRefused(refusal)
        self.public = PublicKey(self.spki)

    @classmethod
    def generate(cls) -> "PrivateKey":
        """A new key from OpenSSL's random generator."""
        return cls(libcrypto.load().EVP_PKEY_Q_keygen(None, None, b"SM2"), "OpenSSL made no SM2 key")

    @classmethod
    def load(cls, der: bytes) -> "PrivateKey":
        """The key of a clear PKCS#8 or SEC 1 structure, as operators bring them. Raises KeyRefused."""
        return cls(libcrypto.parsed(libcrypto.load().d2i_AutoPrivateKey, der), "not an SM2 private key in PKCS#8 or SEC 1")

    @classmethod
    def decrypt(cls, pkcs8: bytes, passphrase: bytes) -> "PrivateKey":
        """The key of an EncryptedPrivateKeyInfo. Raises KeyRefused."""
        crypto = libcrypto.load()
        envelope = clear = None
        try:
            envelope = libcrypto.parsed(crypto.d2i_X509_SIG, pkcs8)
            if not envelope:
                raise KeyRefused("not an encrypted private key in PKCS#8")
            clear = crypto.PKCS8_decrypt(envelope, passphrase, len(passphrase))
            if not clear:
                raise KeyRefused("the passphrase does not open it, or it is damaged")
            return cls(crypto.EVP_PKCS82PKEY(clear), "what was encrypted is not an SM2 private key")
        finally:
            crypto.X509_SIG_free(envelope)
            crypto.PKCS8_PRIV_KEY_INFO_free(clear)
            crypto.ERR_clear_error()

    def encrypt(self, passphrase: bytes) -> bytes:
        """The key as EncryptedPrivateKeyInfo: PBES2 with PBKDF2-HMAC-SHA256 and AES-256-CBC, which `openssl pkey` reads."""
        crypto = self._crypto
        cipher = clear = envelope = None
        try:
            cipher = crypto.EVP_CIPHER_fetch(None, b"AES-256-CBC", None)
            clear = crypto.EVP_PKEY2PKCS8(self._pointer)
            if cipher and clear:
                # -1 asks for PBES2; a salt that is not given is made.
                envelope = crypto.PKCS8_encrypt(-1, cipher, passphrase, len(passphrase), None, SALT_BYTES, PBKDF2_ITERATIONS, clear)
            if not envelope:
                raise ConfigError("OpenSSL does not encrypt private keys with AES-256-CBC", hint=libcrypto.REMEDY)
            return libcrypto.encoded(crypto.i2d_X509_SIG, envelope)
        finally:
            crypto.X509_SIG_free(envelope)
            crypto.PKCS8_PRIV_KEY_INFO_free(clear)
            crypto.EVP_CIPHER_free(cipher)
            crypto.ERR_clear_error()

    def sign(self, message: bytes) -> bytes:
        """A DER signature of `message` that verifies under our public key. Raises SigningFailed."""
        for _ in range(ATTEMPTS):
            signature = self._signed(message)
            if self.public.verify(signature, message):
                return signature
        raise SigningFailed(f"{ATTEMPTS} signatures in a row do not verify under the key that made them")

    def _is_whole(self) -> bool:
        check = self._crypto.EVP_PKEY_CTX_new(self._pointer, None)
        try:
            return bool(check and self._crypto.EVP_PKEY_check(check) == 1)
        finally:
            self._crypto.EVP_PKEY_CTX_free(check)
            self._crypto.ERR_clear_error()

    def _signed(self, message: bytes) -> bytes:
        size = ctypes.c_size_t(MAX_SIGNATURE_BYTES)
        signature = ctypes.create_string_buffer(MAX_SIGNATURE_BYTES)
        with self._context(self._crypto.EVP_DigestSignInit) as context:
            made = self._crypto.EVP_DigestSign(context, signature, ctypes.byref(size), message, len(message)) == 1
        return signature.raw[: size.value] if made else b""


def well_formed(signature: bytes) -> bool:
    """Whether `signature` is the canonical DER of SEQUENCE {r, s} with both from 1 to n-1."""
    if not 8 <= len(signature) <= MAX_SIGNATURE_BYTES:
        return False
    end = 4 + signature[3]
    r, s = int.from_bytes(signature[4:end], "big"), int.from_bytes(signature[end + 2 :], "big")
    return 0 < r < ORDER and 0 < s < ORDER and signature == der(r, s)


def der(r: int, s: int) -> bytes:
    """The canonical DER of a signature."""
    both = b"".join(b"\x02" + bytes([len(number)]) + number for number in (_number(r), _number(s)))
    return b"\x30" + bytes([len(both)]) + both


def _number(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def self_test() -> None:
    """Check this machine's SM2 and SM3 by the standards' examples (GB/T 32918.5 A.2, GB/T 32905 A.1) and a key of our own.

    Raises ConfigError.
    """
    try:
        hashed = hashlib.new("sm3", b"abc").hexdigest()  # of Python's own OpenSSL, which need not be the one that signs
    except ValueError:
        hashed = ""
    if hashed != _EXAMPLE_SM3:
        raise ConfigError("the OpenSSL that this Python's hashlib uses has no SM3", hint="Use a Python whose OpenSSL has it.")
    example = PublicKey(SPKI_PREFIX + _EXAMPLE_KEY)
    signature = der(_EXAMPLE_R, _EXAMPLE_S)
    right = example.verify(signature, _EXAMPLE_MESSAGE) and not example.verify(signature, _EXAMPLE_MESSAGE[:-1])
    try:
        PrivateKey.generate().sign(_EXAMPLE_MESSAGE)
    except SluiceError:
        right = False
    if not right:
        raise ConfigError("the SM2 of this OpenSSL fails the standard's example", hint=libcrypto.REMEDY)
