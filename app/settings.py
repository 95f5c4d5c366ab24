"""One tree of settings: sluice.yaml, then environment SLUICE_<SECTION>__<NAME>, then --set section.name=value.

Loaded once by each command and passed down; the telemetry process alone loads it again when a file changes.
Relative paths in the file are relative to the file's folder.
docs/reference/settings.md is generated from the descriptions here.
"""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from app.errors import ConfigError
from app.setting_layers import Layer, explain_by_layer, laid_over_each_other
from app.setting_sections import (
    AuditSettings,
    DatabaseSettings,
    EngineSettings,
    GpuSettings,
    LeaseSettings,
    OpaSettings,
    PolicySettings,
    ReportSettings,
    SecretsSettings,
    TelemetrySettings,
)

RULES = Path(__file__).resolve().parent.parent / "rego"
"""The rules that come with Sluice."""


REPORT_PATHS = ("path", "register_file", "clauses", "keys", "log_root", "pades_key", "pades_certificates")


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
    report: ReportSettings = Field(default_factory=ReportSettings)
    font: str = Field("", description="TrueType font of the reports with Latin and Chinese; empty: the one that set-up fetched")
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


def load_settings(file: Path | None = None, overrides: tuple[str, ...] = (), *, given: bool = True) -> Settings:
    """Settings from file, environment and `section.name=value` overrides, the later winning. Raises ConfigError.

    `given`: whether --config names the file, which an error about it says then.
    Relative paths become absolute: they are relative to the file's folder, without a file to the working directory.
    """
    layers = [Layer.of_file(file, named_by="--config" if given else "")] if file else []
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
    report = {name: str(folder / path) for name in REPORT_PATHS if (path := getattr(settings.report, name))}
    return settings.model_copy(
        update={
            "models": str(folder / settings.models),
            "policy": settings.policy.model_copy(update={"path": str(policy)}),
            "secrets": settings.secrets.model_copy(update={"path": secrets}),
            "audit": settings.audit.model_copy(update={"keys": keys}),
            "report": settings.report.model_copy(update=report),
            "font": settings.font and str(folder / settings.font),
        }
    )
