"""Which OpenSSL is used, and what is said where it will not do."""

import _ssl
import ctypes
import ctypes.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import ConfigError
from app.settings import load_settings
from app.signing import libcrypto, sm2


@pytest.fixture
def anew() -> Iterator[None]:
    """The library is looked for once more, and again after the test."""
    libcrypto.load.cache_clear()
    yield
    libcrypto.load.cache_clear()


@pytest.mark.usefixtures("anew")
def test_another_library_can_be_named(monkeypatch: pytest.MonkeyPatch):
    """SLUICE_LIBCRYPTO names the library, and is no unknown setting."""
    monkeypatch.setenv("SLUICE_LIBCRYPTO", _ssl.__file__)
    monkeypatch.setattr(_ssl, "__file__", "/nowhere")

    sm2.self_test()
    load_settings()


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("name", ["/nowhere/libcrypto.so.3", "libc.so.6", str(Path(__file__))])
def test_a_library_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str):
    """A path that leads nowhere, or to something else than OpenSSL 3, is a ConfigError with the remedy."""
    monkeypatch.setenv("SLUICE_LIBCRYPTO", name)

    with pytest.raises(ConfigError, match="does not give us OpenSSL 3") as refused:
        sm2.self_test()
    assert "SLUICE_LIBCRYPTO" in refused.value.advice


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("lacking", ["EVP_SIGNATURE_fetch", "EVP_MD_fetch"])
def test_a_library_without_sm2_stops_the_start(monkeypatch: pytest.MonkeyPatch, lacking: str):
    """An OpenSSL built without SM2 or SM3, as some distributions and FIPS have it, is a ConfigError with the remedy."""
    real = ctypes.CDLL

    class Without(real):
        def __getattr__(self, name: str):
            return NoAlgorithm() if name == lacking else super().__getattr__(name)

    monkeypatch.setattr(ctypes, "CDLL", Without)

    with pytest.raises(ConfigError, match="built without SM2 or SM3") as refused:
        sm2.PrivateKey.generate()
    assert "SLUICE_LIBCRYPTO" in refused.value.advice


class NoAlgorithm:
    """A C function that finds nothing."""

    def __call__(self, *_: object) -> None:
        return None
