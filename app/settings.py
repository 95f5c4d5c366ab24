"""One tree of settings: sluice.yaml, then environment SLUICE_<SECTION>__<NAME>, then --set section.name=value.

Loaded once by each command and passed down; the telemetry process alone loads it again when a file changes.
Relative paths in the file are relative to the file's folder.
docs/reference/settings.md is generated from the descriptions here.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from app.errors import ConfigError
from app.setting_layers import Layer, explain_by_layer, laid_over_each_other

RULES = Path(__file__).resolve().parent.parent / "rego"
"""The rules that come with Sluice."""


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


class AuditSettings(_Section):
    """The log's keys: read by `sluice audit` alone, never by serve."""

    keys: str = Field("", description="folder of the log's keys and certificates; empty: audit-keys/ under --var")
    passphrase: str = Field(
        "",
        repr=False,
        description="what the keys are encrypted with: file:PATH of a file outside of --var, or fd:N of an open descriptor; "
        "empty: with an embedded database one is made for trying, else the start is refused",
    )

    @field_validator("passphrase")
    @classmethod
    def _never_in_clear(cls, passphrase: str) -> str:
        if passphrase and not passphrase.startswith(("file:", "fd:")):
            raise ValueError("must be file:PATH or fd:N, so that the passphrase stands in no settings file")
        return passphrase


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


class Settings(BaseSettings):
    """Everything an operator can set."""

    model_config = SettingsConfigDict(
        env_prefix="SLUICE_", env_nested_delimiter="__", extra="forbid", frozen=True, nested_model_default_partial_update=True
    )

    listen: str = Field("127.0.0.1:8080", description="address and port of the HTTP API")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level written")
    log_format: Literal["auto", "json", "text"] = Field("auto", description="auto: text on a terminal, JSON elsewhere")
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    opa: OpaSettings = Field(default_factory=OpaSettings)
    policy: PolicySettings = Field(default_factory=PolicySettings)
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)
    lease: LeaseSettings = Field(default_factory=LeaseSettings)
    secrets: SecretsSettings = Field(default_factory=SecretsSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    models: str = Field("models.yaml", description="file of model specs")
    engines: list[EngineSettings] = Field(default_factory=list, description="engines to poll; hot reloaded with the file")
    gpus: GpuSettings = Field(default_factory=GpuSettings)

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError("must be HOST:PORT with a port from 1 to 65535")
        return value

    @field_validator("engines")
    @classmethod
    def _names_once(cls, engines: list[EngineSettings]) -> list[EngineSettings]:
        names = [engine.name for engine in engines]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"engine name {twice[0]!r} stands twice")
        return engines

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Nothing is read behind the caller's back: load_settings lays file, environment and overrides over each other."""
        return (init_settings,)


def secret_of(field: str, value: str) -> str:
    """The secret that `value` of setting `field` is or, as file:PATH, names. Raises ConfigError where the file cannot be read."""
    if not value.startswith("file:"):
        return value
    path = Path(value.removeprefix("file:"))
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{field}: {path}: {problem}", hint="Name a file that this process may read.", field=field) from None


def settings_file(given: Path | None, var: Path) -> Path | None:
    """The file that a command uses beside serve: the one `given`, else sluice.yaml in `var`, else none."""
    beside_data = var / "sluice.yaml"
    return given or (beside_data if os.path.isfile(beside_data) else None)  # noqa: PTH113 - a closed folder is none, not an error


def load_settings(file: Path | None = None, overrides: tuple[str, ...] = ()) -> Settings:
    """Settings from file, environment and `section.name=value` overrides, the later winning. Raises ConfigError.

    Relative paths become absolute: they are relative to the file's folder, without a file to the working directory.
    """
    layers = [Layer.of_file(file)] if file else []
    layers += [Layer("environment", _environment()), *map(Layer.of_option, overrides)]
    try:
        settings = Settings(**laid_over_each_other(layers))
    except ValidationError as error:
        raise ConfigError(explain_by_layer(error, layers)) from None
    return _anchored(settings, file.parent.absolute() if file else Path.cwd())


def _environment() -> dict[str, Any]:
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:  # names the field, not the value
        raise ConfigError(f"environment: {error}", hint="Write a list, or a whole section, as JSON.") from None


def _anchored(settings: Settings, folder: Path) -> Settings:
    policy = folder / settings.policy.path
    if settings.policy.path == RULES.name and not policy.is_dir():
        policy = RULES
    secrets = settings.secrets.path and str(folder / settings.secrets.path)
    keys = settings.audit.keys and str(folder / settings.audit.keys)
    return settings.model_copy(
        update={
            "models": str(folder / settings.models),
            "policy": settings.policy.model_copy(update={"path": str(policy)}),
            "secrets": settings.secrets.model_copy(update={"path": secrets}),
            "audit": settings.audit.model_copy(update={"keys": keys}),
        }
    )
