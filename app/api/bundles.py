"""What OPA asks of us: its bundle, by long polling, and where to report its status."""

import hmac
import re

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.policy.embedded import BUNDLE_PATH
from app.policy.loader import Loader

MOST_WAIT_S = 60.0
"""A poll is answered after it, whatever the client would like."""

_MEDIA_TYPE = "application/vnd.openpolicyagent.bundles"
"""Tells OPA that this server knows long polling; with any other type it would poll at intervals."""

_WAIT = re.compile(r"(?:^|;|,)\s*wait=(\d+)")


def bundle_routes(loader: Loader, token: str) -> list[Route]:
    """GET /bundles/sluice.tar.gz and POST /status, both for whoever holds `token`."""
    expected = f"Bearer {token}".encode()

    def allowed(request: Request) -> bool:
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), expected)

    async def bundle(request: Request) -> Response:
        if not allowed(request):
            return Response(status_code=401)
        have = request.headers.get("if-none-match", "").removeprefix("W/").strip('"') or None
        wait = _WAIT.search(request.headers.get("prefer", ""))
        compiled = await loader.poll(have, min(float(wait.group(1)), MOST_WAIT_S) if wait else 0.0)
        if compiled is None:
            return Response(status_code=304, headers={"ETag": f'"{have}"'} if have else None, media_type=_MEDIA_TYPE)
        return Response(compiled.archive, headers={"ETag": f'"{compiled.revision}"'}, media_type=_MEDIA_TYPE)

    async def status(request: Request) -> Response:
        if not allowed(request):
            return Response(status_code=401)
        try:
            document = orjson.loads(await request.body())
        except orjson.JSONDecodeError:
            return Response(status_code=400)
        loader.status(document if isinstance(document, dict) else {})
        return Response(status_code=204)

    return [Route(BUNDLE_PATH, bundle, methods=["GET"]), Route("/status", status, methods=["POST"])]
