"""The endpoints that OPA polls, without an OPA."""

import asyncio
import json
from pathlib import Path

from starlette.applications import Starlette

from app.api.bundles import bundle_routes
from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.policy.batch import Batcher
from app.policy.loader import Loader
from app.policy.policy import Policy
from app.policy.record import PolicyRecord
from tests.fixtures.asgi import call
from tests.fixtures.policy import write_rule
from tests.fixtures.waiting import until
from tests.unit.policy.opa_in_python import OpaInPython

BUNDLE = "/bundles/sluice.tar.gz"
TOKEN = {"authorization": "Bearer right"}


def service(folder: Path, binary: Path) -> tuple[Starlette, Loader, Policy]:
    clock, metrics = ManualClock(), Metrics()
    policy = Policy(
        Batcher(OpaInPython({}, []), clock, metrics, timeout_ms=50, calls=1), clock, metrics, memo_bytes=1 << 20, publish_wait_ms=0
    )
    loader = Loader(folder, binary, policy, PolicyRecord([].append, clock), metrics)
    return Starlette(routes=bundle_routes(loader, "right")), loader, policy


async def test_only_the_holder_of_the_token_is_answered(rego_folder: Path, opa_binary: Path) -> None:
    """Without the token neither the bundle is given nor a status taken."""
    app, loader, _ = service(rego_folder, opa_binary)
    await loader.reload()

    for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": "right"}):
        assert (await call(app, "GET", BUNDLE, **wrong)).status == 401
        assert (await call(app, "POST", "/status", b"{}", **wrong)).status == 401
    assert (await call(app, "GET", BUNDLE, **TOKEN)).status == 200


async def test_a_poll_waits_for_a_change_and_confirms_what_runs(rego_folder: Path, opa_binary: Path) -> None:
    """The poll that names the newest revision puts it in force, and is answered by the next one as soon as that is offered."""
    app, loader, policy = service(rego_folder, opa_binary)
    first = await loader.reload()
    given = await call(app, "GET", BUNDLE, **TOKEN)
    assert (given.status, given.headers["etag"], given.body) == (200, f'"{first.revision}"', first.archive)
    assert given.headers["content-type"] == "application/vnd.openpolicyagent.bundles"
    assert policy.revision is None

    waiting = asyncio.create_task(
        call(app, "GET", BUNDLE, if_none_match=f'"{first.revision}"', prefer="modes=snapshot,delta;wait=30", **TOKEN)
    )
    await until(lambda: policy.revision is not None)
    assert policy.revision == first.revision
    write_rule(rego_folder, "mine", "shed contains 0.1")
    second = await loader.reload()

    assert (await waiting).headers["etag"] == f'"{second.revision}"'


async def test_an_unchanged_bundle_is_not_sent_and_open_polls_end_on_close(rego_folder: Path, opa_binary: Path) -> None:
    """304 without a wait, and 304 at once for an open poll when serve drains."""
    app, loader, _ = service(rego_folder, opa_binary)
    first = await loader.reload()
    have = {"if_none_match": f'"{first.revision}"', **TOKEN}
    assert (await call(app, "GET", BUNDLE, **have)).status == 304

    waiting = asyncio.create_task(call(app, "GET", BUNDLE, prefer="wait=30", **have))
    await asyncio.sleep(0.01)
    await loader.close()

    assert (await asyncio.wait_for(waiting, 1.0)).status == 304


async def test_a_status_post_brings_the_error_and_the_last_good_one_is_on_offer_again(rego_folder: Path, opa_binary: Path) -> None:
    """What OPA says of a bundle it got is in the state, and that revision is refused without being sent again."""
    app, loader, policy = service(rego_folder, opa_binary)
    first = await loader.reload()
    await call(app, "GET", BUNDLE, **TOKEN)
    await call(app, "GET", BUNDLE, if_none_match=f'"{first.revision}"', **TOKEN)
    write_rule(rego_folder, "mine", "shed contains 0.1")
    await loader.reload()
    await call(app, "GET", BUNDLE, if_none_match=f'"{first.revision}"', **TOKEN)
    bad = {
        "bundles": {"sluice": {"active_revision": first.revision, "code": "bundle_error", "message": "no", "errors": [{"message": "why"}]}}
    }

    assert (await call(app, "POST", "/status", json.dumps(bad).encode(), **TOKEN)).status == 204

    assert (loader.state.problem, loader.state.offered) == ("no; why", first.revision)
    assert policy.revision == first.revision
    assert (await call(app, "GET", BUNDLE, if_none_match=f'"{first.revision}"', **TOKEN)).status == 304


async def test_a_status_that_is_no_json_is_refused(rego_folder: Path, opa_binary: Path) -> None:
    """400 for garbage, and nothing changes for documents without our bundle."""
    app, loader, _ = service(rego_folder, opa_binary)
    await loader.reload()

    assert (await call(app, "POST", "/status", b"{", **TOKEN)).status == 400
    assert (await call(app, "POST", "/status", b"[1]", **TOKEN)).status == 204
    assert loader.state.problem is None
