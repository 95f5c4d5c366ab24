"""Every metric, in one file. Names follow Prometheus: base units, `_total` for counters, `_ratio` 0..1.

Label values are bounded: tenants and models come from the registry and the catalogue through `LabelBound`, the rest are
enumerations. docs/reference/metrics.md is generated from this registry.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from app import __version__

FAST_BUCKETS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Seconds, fine where a warm decision lies (budget: p99 under 5 ms)."""

RUN_BUCKETS = (1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0)
"""Seconds of making reports (budget of a night: 120 s)."""


MAX_CODES = 200
"""Reason codes and rules: an operator writes them, but a rule can build a code from what a caller sends."""
MAX_GPUS = 1000
"""GPUs and MIG instances: hardware, but an exporter's page could tell any."""
MAX_CLASSES = 50
"""Regions and service classes: names in quotas, which come and go."""


class LabelBound:
    """The first `most` distinct values pass, all later ones become `other`, so that nobody can blow up the series."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: set[str] = set()

    def __call__(self, value: str) -> str:
        """`value`, or `other` once the bound is reached."""
        if value in self._seen:
            return value
        if len(self._seen) < self._most:
            self._seen.add(value)
            return value
        return "other"


class Metrics:
    """All metrics of one process, on a registry of its own, so that tests and several processes never share state."""

    def __init__(self, max_tenants: int = 1000, max_models: int = 200) -> None:
        self.registry = CollectorRegistry()
        self.tenant = LabelBound(max_tenants)
        self.model = LabelBound(max_models)
        self.reason, self.rule = LabelBound(MAX_CODES), LabelBound(MAX_CODES)
        self.region, self.sla_class = LabelBound(MAX_CLASSES), LabelBound(MAX_CLASSES)
        self.gpu = LabelBound(MAX_GPUS)
        self.build = Info("sluice_build", "Version of this process.", registry=self.registry)
        self.build.info({"version": __version__})
        self._add_decisions()
        self._add_policy()
        self._add_signals()
        self._add_dependencies()
        self._add_log()
        self._add_reports()
        self.computed = (
            self.quota_used,
            self.in_flight_requests,
            self.in_flight_tokens,
            self.node_live,
            self.node_kv,
            self.node_waiting,
            self.node_shut_out,
            self.node_max_in_flight,
            self.node_max_num_seqs,
            self.model_blind,
            self.snapshot_age,
            self.audit_backlog_entries,
            self.audit_backlog_age,
            self.audit_log_size,
            self.audit_checkpoint_age,
        )
        """Gauges that are set when somebody looks (app/api/gauges.py)."""

    def _add_decisions(self) -> None:
        """What was decided, and what is in flight for it."""
        r = self.registry
        self.decisions = Counter(
            "sluice_decisions",
            "Decisions by outcome (allow, deny, quota, shed, error) and first reason code.",
            ["outcome", "reason", "tenant", "model", "region", "sla_class"],
            registry=r,
        )
        self.decision_seconds = Histogram(
            "sluice_decision_duration_seconds",
            "Time of one decision inside Sluice, from parsed body to answer.",
            buckets=FAST_BUCKETS,
            registry=r,
        )
        self.replays = Counter("sluice_replays", "Decisions answered from the lease record of the same request id.", registry=r)
        self.leases = Gauge("sluice_leases", "Leases now in flight.", registry=r)
        self.in_flight_requests = Gauge(
            "sluice_in_flight_requests",
            "Our leases in flight by the node they were sent to (empty where none was live).",
            ["node", "model"],
            registry=r,
        )
        self.in_flight_tokens = Gauge(
            "sluice_in_flight_tokens", "Tokens reserved by our leases in flight, prompt and output.", ["node", "model"], registry=r
        )
        self.lease_ends = Counter("sluice_lease_ends", "Leases ended, by how.", ["how"], registry=r)
        self.lease_records_bytes = Gauge("sluice_lease_records_bytes", "Estimated bytes of lease records, ended ones included.", registry=r)
        self.lease_records_evicted = Counter(
            "sluice_lease_records_evicted", "Ended lease records dropped before their time to stay in bounds.", registry=r
        )
        self.settle_flags = Counter("sluice_settle_flags", "Settlements with an implausible report, by flag.", ["flag"], registry=r)

    def _add_policy(self) -> None:
        """How rules were asked and what became of their answers."""
        r = self.registry
        self.memo_lookups = Counter(
            "sluice_policy_memo_lookups", "Lookups of answers by group of rules and result (hit, miss).", ["group", "result"], registry=r
        )
        self.memo_bytes = Gauge("sluice_policy_memo_bytes", "Estimated bytes of the memo.", registry=r)
        self.memo_evicted = Counter("sluice_policy_memo_evicted", "Answers dropped to keep the memo in bounds.", registry=r)
        self.opa_calls = Counter(
            "sluice_opa_calls", "Calls to OPA by result (ok, timeout, conflict, down, undefined).", ["result"], registry=r
        )
        self.opa_call_seconds = Histogram("sluice_opa_call_duration_seconds", "Time of one call to OPA.", buckets=FAST_BUCKETS, registry=r)
        self.opa_batch = Histogram("sluice_opa_batch_size", "Questions per call to OPA.", buckets=(1, 2, 3, 4, 5, 6, 7, 8), registry=r)
        self.policy_errors = Counter(
            "sluice_policy_errors", "Answers that could not be used, by code and rule.", ["code", "rule"], registry=r
        )
        self.policy_held = Counter(
            "sluice_policy_held", "Questions answered policy_timeout without being asked, because they timed out a moment ago.", registry=r
        )
        self.policy_substitutes = Counter(
            "sluice_policy_substitutes", "Terms taken from older readings because OPA did not answer.", registry=r
        )
        self.policy_loads = Counter("sluice_policy_loads", "Policy bundles by result (activated, refused).", ["result"], registry=r)
        self.policy_revision = Info("sluice_policy_revision", "Revision of the bundle in force.", registry=r)
        self.shadow_overrides = Counter(
            "sluice_shadow_overrides",
            "Terms of decisions, and answers for nodes, that a shadow rule would have changed: a deny, a smaller limit, a larger shed and so on.",
            ["rule"],
            registry=r,
        )

    def _add_signals(self) -> None:
        """What engines and GPUs say, and how they are asked."""
        r = self.registry
        self.snapshot_generation = Gauge("sluice_snapshot_generation", "Generation of the telemetry snapshot in force.", registry=r)
        self.snapshot_age = Gauge(
            "sluice_snapshot_age_seconds", "Age of the newest good page of a model's live nodes; absent without one.", ["model"], registry=r
        )
        self.node_live = Gauge(
            "sluice_engine_live",
            "1 where the node is fresh, tells the declared signals of all its models, and is neither frozen nor failing for any.",
            ["node"],
            registry=r,
        )
        self.node_kv = Gauge("sluice_engine_kv_cache_usage_ratio", "KV cache in use; absent when unknown.", ["node", "model"], registry=r)
        self.node_waiting = Gauge(
            "sluice_engine_waiting_requests", "Requests waiting in the engine; absent when unknown.", ["node", "model"], registry=r
        )
        self.model_blind = Gauge(
            "sluice_model_blind", "1 where no node of the model is live, as apart from one that is full.", ["model"], registry=r
        )
        self.node_shut_out = Gauge(
            "sluice_engine_shut_out",
            "1 where a node with a fresh page gets no requests but a probe, by why (frozen, failing, avoided).",
            ["node", "model", "why"],
            registry=r,
        )
        self.node_max_in_flight = Gauge(
            "sluice_engine_max_in_flight_requests", "Requests that the controller lets be in flight there.", ["node", "model"], registry=r
        )
        self.node_max_num_seqs = Gauge(
            "sluice_engine_max_num_seqs", "Sequences that rules leave the batch of a node.", ["node"], registry=r
        )
        self.engine_controls = Counter(
            "sluice_engine_controls", "Engines told their max_num_seqs, by result (taken, failed).", ["node", "result"], registry=r
        )
        self.probes = Counter("sluice_probes", "Requests sent to a node that is frozen or failing, to see.", ["node"], registry=r)
        self.scrapes = Counter(
            "sluice_scrapes", "Scrapes of engines by result (ok, timeout, connect, status, parse, missing).", ["node", "result"], registry=r
        )
        self.scrape_seconds = Histogram(
            "sluice_scrape_duration_seconds", "Time of one scrape, parsing included.", buckets=FAST_BUCKETS, registry=r
        )
        self.readings_unknown = Counter(
            "sluice_readings_unknown",
            "Readings of declared signals that were impossible or absent, by signal.",
            ["node", "signal"],
            registry=r,
        )
        self.gpu_memory = Gauge("sluice_gpu_memory_ratio", "Device memory in use; absent when unknown.", ["gpu"], registry=r)
        self.gpu_errors = Counter(
            "sluice_gpu_errors",
            "Readings of device memory that failed, of a GPU or of all, by source (nvml, nvidia-smi, dcgm) and problem.",
            ["source", "problem"],
            registry=r,
        )

    def _add_dependencies(self) -> None:
        """What the process leans on, who was refused at its edge, and what tenants spent."""
        r = self.registry
        self.dependency_errors = Counter("sluice_dependency_errors", "Failed calls to a dependency.", ["dependency", "call"], registry=r)
        self.config_loads = Counter(
            "sluice_config_loads", "Loads of configuration files by result (ok, refused).", ["file", "result"], registry=r
        )
        self.background_failures = Counter(
            "sluice_background_failures", "Failures of work that goes on beside requests, by piece; each began again.", ["work"], registry=r
        )
        self.audit_intake = Counter(
            "sluice_audit_intake", "Log entries handed to the intake, by kind and result.", ["kind", "result"], registry=r
        )
        self.audit_pending_bytes = Gauge(
            "sluice_audit_pending_bytes", "Estimated bytes of log entries that wait to be written.", registry=r
        )
        self.audit_lost = Counter(
            "sluice_audit_lost",
            "What found no room to wait for the log, by kind of entry (decisions count one by one); an audit.gap entry tells of it.",
            ["kind"],
            registry=r,
        )
        self.http_refused = Counter("sluice_http_refused", "Requests refused at the edge, by error code.", ["code"], registry=r)
        self.quota_used = Gauge(
            "quota_used",
            "Weighted tokens a tenant spent on a model in the last minute.",
            ["tenant", "model", "region", "sla_class"],
            registry=r,
        )

    def _add_log(self) -> None:
        """How far the log has come. Labelled by log, so that what is not known is absent and never 0."""
        labels, r = ["log"], self.registry
        self.audit_backlog_entries = Gauge(
            "sluice_audit_backlog_entries", "Log entries that wait to be sequenced; 10000 stands for any more.", labels, registry=r
        )
        self.audit_backlog_age = Gauge(
            "sluice_audit_backlog_age_seconds", "How long the first of those has waited; 0 where none waits.", labels, registry=r
        )
        self.audit_log_size = Gauge("sluice_audit_log_size", "Entries of the log.", labels, registry=r)
        self.audit_checkpoint_age = Gauge(
            "sluice_audit_checkpoint_age_seconds", "Age of the newest signed checkpoint; absent before the first.", labels, registry=r
        )

    def _add_reports(self) -> None:
        """The nightly reports, as serve has them made and finds them on the shelf."""
        r = self.registry
        self.report_runs = Counter(
            "sluice_report_runs", "Runs of `sluice report nightly` that serve started, by result (made, failed).", ["result"], registry=r
        )
        self.report_run_seconds = Histogram(
            "sluice_report_run_duration_seconds", "Time of the runs that ended well.", buckets=RUN_BUCKETS, registry=r
        )
        self.report_age = Gauge(
            "sluice_report_newest_age_seconds",
            "How long ago the newest day ended whose reports are there, by its zone; absent where there are none.",
            ["zone"],
            registry=r,
        )
