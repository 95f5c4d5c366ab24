"""Gauges that are computed when somebody looks: what tenants spent, what is in flight, how each node and model is, how far the log has come."""

from app.audit.reading.lag import LagWatch
from app.decision.decide import Rooms
from app.limiter.in_flight import Place
from app.observability.metrics import Metrics
from app.telemetry.view import SHUT_OUT, NodeState


def show(rooms: Rooms, log: LagWatch, metrics: Metrics) -> None:
    """Set them all; what is not known or configured any more has none."""
    for gauge in metrics.computed:
        gauge.clear()
    _quota_used(rooms, metrics)
    _in_flight(rooms, metrics)
    for state in rooms.readings.view.nodes:
        _node(state, metrics)
    _every_model_live(rooms, metrics)
    _models(rooms, metrics)
    _log(log, metrics)


def _quota_used(rooms: Rooms, metrics: Metrics) -> None:
    for (tenant_id, model), tokens in rooms.limiter.spent_last_minute().items():
        tenant = rooms.registry.tenant(tenant_id)
        if tenant is not None:
            labels = (
                metrics.tenant(tenant_id),
                metrics.model(model),
                metrics.region(tenant.quota.region),
                metrics.sla_class(tenant.quota.sla_class),
            )
            metrics.quota_used.labels(*labels).inc(tokens)


def _in_flight(rooms: Rooms, metrics: Metrics) -> None:
    """Of every node and model that is configured, 0 included, and of those that are not any more as long as they hold something."""
    places: set[Place] = {(state.node, state.model) for state in rooms.readings.view.nodes}
    for node, model in places.union(rooms.limiter.busy()):
        held = rooms.limiter.in_flight(node, model)
        labels = (node or "", metrics.model(model))
        metrics.in_flight_requests.labels(*labels).inc(held.requests)
        metrics.in_flight_tokens.labels(*labels).inc(held.tokens)


def _node(state: NodeState, metrics: Metrics) -> None:
    labels = (state.node, metrics.model(state.model))
    told = {
        metrics.node_kv: state.reading.kv_ratio,
        metrics.node_waiting: state.reading.waiting,
        metrics.node_max_in_flight: state.standing.max_in_flight,
    }
    for gauge, value in told.items():
        if value is not None:
            gauge.labels(*labels).set(value)
    for why in SHUT_OUT:
        metrics.node_shut_out.labels(*labels, why).set(why == state.shut_out)
    if state.standing.max_num_seqs is not None:
        metrics.node_max_num_seqs.labels(state.node).set(state.standing.max_num_seqs)


def _every_model_live(rooms: Rooms, metrics: Metrics) -> None:
    live: dict[str, bool] = {}
    for state in rooms.readings.view.nodes:
        live[state.node] = live.get(state.node, True) and not state.why
    for node, every_model in live.items():
        metrics.node_live.labels(node).set(every_model)


def _models(rooms: Rooms, metrics: Metrics) -> None:
    view = rooms.readings.view
    elapsed_ms = rooms.clock.monotonic_ms() - view.taken_ms
    for name, model in view.models.items():
        metrics.model_blind.labels(metrics.model(name)).set(not model.live)
        if model.age_ms is not None:
            metrics.snapshot_age.labels(metrics.model(name)).set((model.age_ms + elapsed_ms) / 1000)


def _log(log: LagWatch, metrics: Metrics) -> None:
    lag = log.newest
    if lag is None:
        return
    told = {
        metrics.audit_backlog_entries: lag.backlog,
        metrics.audit_backlog_age: log.backlog_age_s(),
        metrics.audit_log_size: lag.size,
        metrics.audit_checkpoint_age: log.checkpoint_age_s(),
    }
    for gauge, value in told.items():
        if value is not None:
            gauge.labels(lag.log).set(value)
