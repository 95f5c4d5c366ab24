"""docs/reference/metrics.md, from app/observability/metrics.py."""

from collections.abc import Iterator

from prometheus_client.metrics import MetricWrapperBase

from app.observability.metrics import FAST_BUCKETS, Metrics
from docs.generate.markdown import code, page, table

INTRO = """
`GET /metrics` of serve answers the text format of Prometheus and needs no key.
The telemetry process has a `/metrics` of its own: scrapes, unknown readings and device memory are told there, and all else of engines on serve's.
Where serve started it, it listens on `var/run/telemetry.sock`:
`curl --unix-socket var/run/telemetry.sock http://telemetry/metrics`.

A counter with labels has no series until it counted something.
Label values are bounded: the first 1000 tenants and the first 200 models keep their names, all later ones are `other`,
and a tenant or model that Sluice does not know is `unknown`.
"""


def metrics_page() -> str:
    """Every metric as it stands on the page."""
    rows = [(code(name), kind, ", ".join(map(code, labels)), text) for name, kind, labels, text in metric_lines()]
    buckets = f"Histograms of seconds have the buckets {', '.join(f'{bound:g}' for bound in FAST_BUCKETS)}."
    return page("Metrics", INTRO.strip(), table(("metric", "type", "labels", "meaning"), rows), buckets)


def metric_lines() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Name on the page, type, labels and meaning of each metric."""
    for metric in vars(Metrics()).values():
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            yield f"{family.name}{suffix}", family.type, tuple(metric._labelnames), family.documentation  # noqa: SLF001 - told nowhere else
