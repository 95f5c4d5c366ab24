"""Many tenants at once: COPY with the owner's rights, since 100 000 changes through the API would take longer than the run."""

import json
import time
from datetime import UTC, datetime

import psycopg

from app.access import Access
from app.database import conninfo
from bench.questions import NUMBERED, quota
from bench.servers import LOOK_S, Sluice, ask

LOADED_S = 90.0
_COPY = """
    COPY registry.tenant_quota (tenant, version, deleted, qps, tpm, concurrency, rate_factors, costs, sla_class, region, zone, updated)
    FROM STDIN
"""


def numbered(number: int) -> str:
    """The id of one of many tenants, as the load generator fills it in."""
    return NUMBERED.replace("{k}", f"{number:08d}")


def load_numbered(sluice: Sluice, count: int) -> None:
    """Give `sluice` the tenants 0 to `count` - 1 and wait until it decides by them. Raises RuntimeError where it does not."""
    now = datetime.now(UTC)
    with psycopg.connect(conninfo(Access(sluice.var / "secrets").urls().owner)) as connection:
        with connection.cursor().copy(_COPY) as copy:
            for number in range(count):
                copy.write_row(_row(number, now))
        connection.execute("NOTIFY sluice_quota")
    deadline = time.perf_counter() + LOADED_S
    while not all(_known(sluice, number) for number in (0, count // 2, count - 1)):
        if time.perf_counter() > deadline:
            raise RuntimeError(f"{sluice.name} did not take {count} tenants within {LOADED_S:g} s")
        time.sleep(LOOK_S)


def _row(number: int, now: datetime) -> tuple[object, ...]:
    own = quota(number)
    numbers = (own["qps"], own["tpm"], own["concurrency"], json.dumps(own["rate_factors"]), "{}")
    return (numbered(number), 1, False, *numbers, own["sla_class"], own["region"], own["zone"], now)


def _known(sluice: Sluice, number: int) -> bool:
    return ask(sluice.port, "GET", f"/quotas/{numbered(number)}", headers=sluice.credential("admin"))[0] == 200
