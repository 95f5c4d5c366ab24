"""The sections of the settings: what an operator can set, and what each may be.

docs/reference/settings.md is generated from the descriptions here.
"""

import re
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

EMBEDDED = "embedded"
"""What a url says where serve starts that part itself, as a child."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DatabaseSettings(_Section):
    """PostgreSQL 15 to 18: the registry and the log's intake."""

    url: str = Field(
        EMBEDDED,
        repr=False,
        description="`embedded` (a child of serve), or postgresql://sluice_registry:…@host/db of a server 15 to 18, or file:PATH that holds it",
    )
    owner_url: str = Field("", repr=False, description="the same for sluice_owner, which migrates; unused when embedded")
    intake_url: str = Field("", repr=False, description="the same for sluice_intake, which inserts log entries; unused when embedded")
    log_url: str = Field("", repr=False, description="the same for sluice_log, which reads the log for /audit/*; unused when embedded")
    sequencer_url: str = Field(
        "",
        repr=False,
        description="the same for sluice_sequencer, for `sluice audit run` alone: leave it out of serve's settings; unused when embedded",
    )
    pool_size: int = Field(5, ge=1, le=50, description="connections per pool")
    timeout_ms: int = Field(2000, ge=50, le=60_000, description="how long one statement or one wait for a connection may take")


class OpaSettings(_Section):
    """Open Policy Agent."""

    url: str = Field(EMBEDDED, description="`embedded` (a child of serve), or http://host:port of an OPA that loads our bundle")
    timeout_ms: int = Field(50, ge=5, le=5000, description="how long one question may take before the answer is policy_timeout")
    binary: str = Field("", description="path of the opa program; empty: .tools/opa, then PATH")


RuleMode = Literal["on", "off", "shadow"]


def _on_or_off(value: Any) -> Any:
    """The mode itself: to YAML, `on` and `off` without quotes are true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class PolicySettings(_Section):
    """Where rules live and how their answers are kept."""

    path: str = Field(
        "rego",
        description="folder with rules/, nodes/ and lib/; `rego`, where there is none beside the settings file, is the rules that come with Sluice",
    )
    memo_mib: int = Field(32, ge=1, le=1024, description="bound of the memo of answers; the least used leave first")
    publish_wait_ms: int = Field(25, ge=0, le=1000, description="how long a new snapshot waits for its warm questions")
    rules: dict[str, Annotated[RuleMode, BeforeValidator(_on_or_off)]] = Field(
        default_factory=dict,
        description="by name of a rule: `on` (in force), `shadow` (only recorded) or `off` (checked, not asked), over what METADATA says",
    )


class TelemetrySettings(_Section):
    """Readings of the engines."""

    url: str = Field(EMBEDDED, description="`embedded` (a child of serve), or http://host:port of a shared `sluice telemetry`")
    token: str = Field(
        "",
        repr=False,
        description="what `sluice telemetry` asks of its readers and serve sends, or file:PATH that holds it; empty: none is asked",
    )
    stale_ms: int = Field(1000, ge=100, le=60_000, description="a node whose newest good page is older leaves the snapshot (A2: 1 s)")
    scrape_timeout_ms: int = Field(500, ge=20, le=10_000, description="deadline of one scrape")


class LeaseSettings(_Section):
    """Leases of admitted requests."""

    ttl_ms: int = Field(30_000, ge=1000, le=3_600_000, description="life of a lease that nobody renews")
    keep_ms: int = Field(60_000, ge=0, le=3_600_000, description="how long an ended lease still answers a replay or a late settle")
    records_mib: int = Field(
        56, ge=1, le=4096, description="bound of lease records; the oldest ended ones leave first, then admission is refused"
    )


class SecretsSettings(_Section):
    """Keys that only files hold."""

    path: str = Field("", description="folder of the subject and tenant keys; empty: secrets/ under --var")


def _only_named(passphrase: str) -> str:
    if passphrase and not passphrase.startswith(("file:", "fd:")):
        raise ValueError("must be file:PATH or fd:N, so that the passphrase stands in no settings file")
    return passphrase


class AuditSettings(_Section):
    """The log's keys: read by `sluice audit` alone, never by serve."""

    keys: str = Field("", description="folder of the log's keys and certificates; empty: audit-keys/ under --var")
    passphrase: str = Field(
        "",
        repr=False,
        description="what the keys are encrypted with: file:PATH of a file outside of --var, or fd:N of an open descriptor; "
        "empty: with an embedded database one is made for trying, else the start is refused",
    )

    _never_in_clear = field_validator("passphrase")(_only_named)


class ReportSettings(_Section):
    """The nightly compliance reports: made by `sluice report nightly`, which serve starts when a day is over."""

    path: str = Field("", description="folder of the finished reports, shared by replicas; empty: reports/ under --var")
    zone: str = Field("UTC", description="time zone whose days the reports tell of, such as Asia/Shanghai")
    at: str = Field(
        "01:00", description="time of that zone at which serve has the reports of the day before made, HH:MM; `off`: a CronJob does it"
    )
    organization: str = Field("", max_length=200, description="who is responsible, as the cover says it")
    system: str = Field("", max_length=200, description="name of the system that is reported on, as the cover says it")
    register_file: str = Field(
        "", description="YAML of the records of processing (GDPR Art. 30, PIPL 55 and 56); empty: the one that comes with Sluice"
    )
    clauses: str = Field("", description="folder of clauses to report on; empty: those that come with Sluice")
    keys: str = Field("", description="folder of the report keys, which are not the log's; empty: report-keys/ under --var")
    log_root: str = Field(
        "",
        description="root certificate of the log (PEM) that reports are checked under, for where the log's keys are on another machine; "
        "empty: the one in audit.keys, else the one that the log itself names, which proves little",
    )
    passphrase: str = Field(
        "",
        repr=False,
        description="what the keys are encrypted with: file:PATH of a file outside of --var, or fd:N of an open descriptor; "
        "empty: with an embedded database one is made for trying, else no report is signed or made",
    )
    pades_key: str = Field(
        "", description="private key (PEM, P-256) of a signature for ordinary PDF readers, below the SM2 one; empty: none"
    )
    pades_certificates: str = Field("", description="its certificate and those above it (PEM); empty: no such signature")
    timestamp_url: str = Field("", description="where an RFC 3161 time stamp is asked for each signature; empty: the signer's clock alone")

    _never_in_clear = field_validator("passphrase")(_only_named)

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{zone!r} is no time zone; write one such as Asia/Shanghai") from None
        return zone

    @field_validator("at", mode="before")
    @classmethod
    def _time_of_day(cls, at: Any) -> Any:
        at = "off" if at is False else at
        if at != "off" and not (isinstance(at, str) and re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", at)):
            raise ValueError("must be HH:MM in quotes, from 00:00 to 23:59, or off")
        return at


AutoOrOff = Annotated[Literal["auto", "off"], BeforeValidator(_on_or_off)]
EngineKind = Literal["vllm", "sglang", "llamacpp", "tgi", "triton", "trtllm"]


class GpuSettings(_Section):
    """Where device memory is read."""

    nvml: AutoOrOff = Field("auto", description="GPUs of the machine that `sluice telemetry` runs on; auto: where it has NVML")
    nvidia_smi: AutoOrOff = Field(
        "auto", description="the nvidia-smi program where NVML cannot be used; it tells a MIG instance as GPU-…/N, N its number on the GPU"
    )
    dcgm: list[str] = Field(
        default_factory=list,
        description="addresses of DCGM exporters, such as http://host:9400; their page is at /metrics, and tells a MIG instance as GPU-…/N",
    )
    interval_ms: int = Field(200, ge=100, le=10_000, description="time between two readings (B11: 200 ms)")

    @field_validator("dcgm")
    @classmethod
    def _addresses(cls, dcgm: list[str]) -> list[str]:
        if wrong := [url for url in dcgm if not url.startswith(("http://", "https://"))]:
            raise ValueError(f"{wrong[0]!r} is no http:// or https:// address")
        return dcgm


class EngineSettings(_Section):
    """One inference engine that is polled."""

    name: str = Field(min_length=1, max_length=128, description="node name in snapshots and decisions")
    kind: EngineKind = Field("vllm", description="whose page it is; trtllm is TensorRT-LLM, served by Dynamo")
    url: str = Field(pattern=r"^https?://", description="address of the engine; its page is at /metrics")
    models: list[str] = Field(min_length=1, description="ids of models.yaml that it serves")
    poll_ms: int = Field(100, ge=50, le=10_000, description="time between scrapes (A1: 50 to 100 ms)")
    gpus: list[str] = Field(
        default_factory=list,
        description="UUIDs of the GPUs or MIG instances it runs on (MIG-… by NVML, GPU-…/N by DCGM); empty: their memory is not looked at",
    )
    max_num_seqs: int = Field(256, ge=1, le=1_000_000, description="most sequences in its batch: what rules for nodes scale (B11)")
    control_url: str = Field(
        "",
        pattern=r"^(https?://.*)?$",
        description="where the engine takes {max_num_seqs: n} by POST; empty: the figure is only published",
    )
    stand_in: bool = Field(default=False, description="for trying: serve starts a stand-in engine at this address")
