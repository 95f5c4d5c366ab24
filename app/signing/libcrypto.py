"""The C functions of OpenSSL 3 that SM2 needs, from the library that Python's own `ssl` is linked to.

So there is no further dependency, and security updates of that library reach us with those of Python. SLUICE_LIBCRYPTO names
another one. ctypes lets go of the interpreter's lock during each call.

When down: a library that is missing, older, or built without SM2 is a ConfigError; nothing is signed or verified in its place.
"""

import _ssl
import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_long, c_size_t, c_void_p
from typing import Any

from app.errors import ConfigError

VARIABLE = "SLUICE_LIBCRYPTO"
REMEDY = (
    f"Set {VARIABLE} to the path of a libcrypto of OpenSSL 3 that has SM2 "
    "(`openssl list -signature-algorithms` names it), such as libcrypto.so.3 of Debian or Ubuntu."
)

_BUFFER = POINTER(c_char_p)
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ERR_clear_error": (None, ()),
    "EVP_MD_fetch": (c_void_p, (c_void_p, c_char_p, c_char_p)),
    "EVP_SIGNATURE_fetch": (c_void_p, (c_void_p, c_char_p, c_char_p)),
    "EVP_SIGNATURE_free": (None, (c_void_p,)),
    "EVP_CIPHER_fetch": (c_void_p, (c_void_p, c_char_p, c_char_p)),
    "EVP_CIPHER_free": (None, (c_void_p,)),
    "EVP_MD_CTX_new": (c_void_p, ()),
    "EVP_MD_CTX_free": (None, (c_void_p,)),
    "EVP_MD_CTX_set_pkey_ctx": (None, (c_void_p, c_void_p)),
    "EVP_PKEY_CTX_new": (c_void_p, (c_void_p, c_void_p)),
    "EVP_PKEY_CTX_free": (None, (c_void_p,)),
    "EVP_PKEY_CTX_set1_id": (c_int, (c_void_p, c_char_p, c_int)),
    "EVP_PKEY_check": (c_int, (c_void_p,)),
    "EVP_DigestSignInit": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "EVP_DigestVerifyInit": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "EVP_DigestSign": (c_int, (c_void_p, c_char_p, POINTER(c_size_t), c_char_p, c_size_t)),
    "EVP_DigestVerify": (c_int, (c_void_p, c_char_p, c_size_t, c_char_p, c_size_t)),
    "EVP_PKEY_Q_keygen": (c_void_p, (c_void_p, c_char_p, c_char_p)),
    "EVP_PKEY_is_a": (c_int, (c_void_p, c_char_p)),
    "EVP_PKEY_free": (None, (c_void_p,)),
    "d2i_PUBKEY": (c_void_p, (c_void_p, _BUFFER, c_long)),
    "i2d_PUBKEY": (c_int, (c_void_p, _BUFFER)),
    "d2i_AutoPrivateKey": (c_void_p, (c_void_p, _BUFFER, c_long)),
    "EVP_PKEY2PKCS8": (c_void_p, (c_void_p,)),
    "EVP_PKCS82PKEY": (c_void_p, (c_void_p,)),
    "PKCS8_PRIV_KEY_INFO_free": (None, (c_void_p,)),
    "PKCS8_encrypt": (c_void_p, (c_int, c_void_p, c_char_p, c_int, c_char_p, c_int, c_int, c_void_p)),
    "PKCS8_decrypt": (c_void_p, (c_void_p, c_char_p, c_int)),
    "d2i_X509_SIG": (c_void_p, (c_void_p, _BUFFER, c_long)),
    "i2d_X509_SIG": (c_int, (c_void_p, _BUFFER)),
    "X509_SIG_free": (None, (c_void_p,)),
}


@functools.cache
def load() -> Any:
    """The library, its functions typed, known to have SM2 and SM3. Raises ConfigError with the remedy."""
    # Python built as one file has its OpenSSL inside the program itself, which is what None names.
    name = os.environ.get(VARIABLE) or getattr(_ssl, "__file__", None)
    try:
        library = ctypes.CDLL(name)
        for function, (result, arguments) in _FUNCTIONS.items():
            entry = getattr(library, function)
            entry.restype, entry.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise ConfigError(f"{name or 'this Python'} does not give us OpenSSL 3: {error}", hint=REMEDY) from None
    if not _has_sm2(library):
        raise ConfigError(f"the OpenSSL of {name or 'this Python'} was built without SM2 or SM3", hint=REMEDY)
    return library


def _has_sm2(library: Any) -> bool:
    signature = library.EVP_SIGNATURE_fetch(None, b"SM2", None)
    library.EVP_SIGNATURE_free(signature)
    found = bool(signature) and bool(sm3(library))
    library.ERR_clear_error()
    return found


@functools.cache
def sm3(library: Any) -> int | None:
    """SM3 of `library`, kept for good: fetching it costs more than hashing a checkpoint."""
    digest: int | None = library.EVP_MD_fetch(None, b"SM3", None)
    return digest


def parsed(decode: Any, der: bytes) -> int | None:
    """What the d2i function `decode` makes of `der`: a pointer that the caller frees, or None."""
    cursor = c_char_p(der)
    pointer: int | None = decode(None, ctypes.byref(cursor), len(der))
    return pointer


def encoded(encode: Any, pointer: int) -> bytes:
    """What the i2d function `encode` makes of `pointer`."""
    size = encode(pointer, None)
    buffer = ctypes.create_string_buffer(max(size, 0) + 1)
    cursor = c_char_p(ctypes.addressof(buffer))
    written = encode(pointer, ctypes.byref(cursor))
    return buffer.raw[: max(written, 0)]
