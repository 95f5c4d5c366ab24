"""Time stamps by somebody else (RFC 3161): over SHA-256, which every authority takes, so that a signing time is not the signer's word alone.

What an authority answers is checked for what was asked, not for who it is: whoever relies on it checks that with
`openssl ts -verify -digest … -in FILE.tsr -CAfile …` and the authority's own certificates.

When down: an authority that does not answer in time, or refuses, is NoTimeStamp; it is not asked again, so that it can't hold up a night
for longer than once its time. The reports are made without.
"""

import secrets
import threading
import urllib.error
import urllib.request
from typing import ClassVar
from urllib.parse import urlsplit

from asn1crypto import algos, cms, core, tsp
from pyhanko.sign.timestamps import TimeStamper

from app.errors import ConfigError, SluiceError

TIMEOUT_S = 10.0
"""Others answer in one; a connection that drips is left behind after this, too."""
MAX_REPLY_BYTES = 64 * 1024
NONCE_BITS = 64
_GRANTED = ("granted", "granted_with_mods")


class _Answer(core.Sequence):  # type: ignore[misc]
    """TimeStampResp as RFC 3161 has it: without a token where none is granted, which asn1crypto does not know."""

    _fields: ClassVar = [("status", tsp.PKIStatusInfo), ("time_stamp_token", cms.ContentInfo, {"optional": True})]


class NoTimeStamp(SluiceError):
    """The time stamp authority gave no time stamp; what it should have stamped is whole, and tells the signer's own time alone."""

    code = "no_time_stamp"
    hint = "Is report.timestamp_url right, and can this machine reach it? `sluice report nightly --again` makes the night once more."


class TimeStampAuthority:
    """The authority at `url`, for one making of reports."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(
                f"report.timestamp_url: {url!r} is no http:// or https:// address",
                hint="Write the address of an RFC 3161 authority.",
                field="report.timestamp_url",
            )
        self._url = url
        self._timeout_s = timeout_s
        self._down: NoTimeStamp | None = None

    def stamp(self, sha256: bytes) -> bytes:
        """The TimeStampResp (DER) over what has this SHA-256. Raises NoTimeStamp."""
        imprint = tsp.MessageImprint({"hash_algorithm": algos.DigestAlgorithm({"algorithm": "sha256"}), "hashed_message": sha256})
        asked = {"version": 1, "message_imprint": imprint, "cert_req": True, "nonce": secrets.randbits(NONCE_BITS)}
        return bytes(self.ask(tsp.TimeStampReq(asked)).dump())

    def ask(self, request: tsp.TimeStampReq) -> tsp.TimeStampResp:
        """What the authority grants. Raises NoTimeStamp, and the same again without asking once it did."""
        if self._down:
            raise self._down
        try:
            return _granted(request, self._post(request.dump()))
        except NoTimeStamp as error:
            self._down = error
            raise

    def _post(self, body: bytes) -> bytes:
        """Its answer. A thread does the asking, since no time-out of sockets bounds a server that drips. Raises NoTimeStamp."""
        replies: list[bytes] = []
        failures: list[str] = []

        def work() -> None:
            headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
            request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - http and https alone, see above
            try:
                with urllib.request.urlopen(request, timeout=self._timeout_s) as reply:  # noqa: S310
                    replies.append(reply.read(MAX_REPLY_BYTES + 1))
            except (OSError, ValueError, urllib.error.URLError) as error:
                failures.append(str(getattr(error, "reason", None) or error))
            except Exception as error:  # noqa: BLE001 - http.client has errors of its own for what is no HTTP
                failures.append(type(error).__name__)

        thread = threading.Thread(target=work, name="time-stamp", daemon=True)
        thread.start()
        thread.join(self._timeout_s)
        if replies:
            return replies[0]
        # What goes into reports: of an address with a password in it the host alone.
        raise NoTimeStamp(f"{urlsplit(self._url).hostname}: {failures[0] if failures else f'no answer within {self._timeout_s:g} s'}")


class StampedWithin(TimeStamper):
    """The same authority for pyHanko, which puts what it gives into a PAdES signature."""

    def __init__(self, authority: TimeStampAuthority) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._authority = authority

    async def async_request_tsa_response(self, req: tsp.TimeStampReq) -> tsp.TimeStampResp:
        """What the authority grants. Raises NoTimeStamp."""
        return self._authority.ask(req)


def _granted(request: tsp.TimeStampReq, reply: bytes) -> tsp.TimeStampResp:
    """The reply, where it grants what was asked. Raises NoTimeStamp."""
    try:
        status = _Answer.load(reply, strict=True)["status"]["status"].native
        if status not in _GRANTED:
            raise NoTimeStamp(f"the authority answers {status}")
        response = tsp.TimeStampResp.load(reply, strict=True)
        stamped = response["time_stamp_token"]["content"]["encap_content_info"]["content"].parsed
        same = stamped["message_imprint"].dump() == request["message_imprint"].dump() and stamped["nonce"].native == request["nonce"].native
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        raise NoTimeStamp("what the authority answers is no time stamp") from None
    if not same:
        raise NoTimeStamp("the authority stamped something else than it was asked to")
    return response
