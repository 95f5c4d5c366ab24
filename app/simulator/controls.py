"""What stands beside an engine's own routes: its batch for Sluice to set, faults and forced gauges for tests, its card's exporter."""

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.simulator import fields
from app.simulator.device import Device
from app.simulator.engine import Engine
from app.simulator.faults import Fault, Load

MOST_NUM_SEQS = 1_000_000


def routes(engine: Engine) -> list[Route]:
    """POST /control, /faults and /load, and GET /dcgm/metrics where the engine has a card."""

    async def control(request: Request) -> Response:
        document = fields.document(await request.body())
        fields.only(("max_num_seqs",), document)
        engine.set_max_num_seqs(fields.whole(document, "max_num_seqs", MOST_NUM_SEQS))
        return JSONResponse({"max_num_seqs": engine.scheduler.max_num_seqs})

    async def faults(request: Request) -> Response:
        engine.set_fault(Fault.of(fields.document(await request.body())))
        return JSONResponse({"mode": engine.faults.current.mode})

    async def load(request: Request) -> Response:
        engine.load = Load.of(fields.document(await request.body()))
        return JSONResponse({"forced": engine.load != Load()})

    controls = [Route(path, act, methods=["POST"]) for path, act in (("/control", control), ("/faults", faults), ("/load", load))]
    return [*controls, *([_exporter(engine, engine.config.device)] if engine.config.device else [])]


def _exporter(engine: Engine, device: Device) -> Route:
    async def dcgm(_: Request) -> Response:
        return Response(device.render(engine.used_mib(device)), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    return Route("/dcgm/metrics", dcgm)
