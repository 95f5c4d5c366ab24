"""Whether programs that Sluice starts, or asks, are there and are what they should be."""

import urllib.request
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import TIMEOUT_S, output_of
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.setting_sections import OpaSettings


def opa(settings: "OpaSettings") -> Finding:
    """Whether OPA can be started, or answers where the settings say that it runs."""
    from app.policy.program import find_opa

    if settings.url != "embedded":
        return _answering(settings.url)
    try:
        binary = find_opa(settings.binary)
        version = output_of([binary, "version"])
    except ConfigError as error:
        return Finding("opa", "fail", error.message, error.advice)
    if "Rego Version: v1" not in version.splitlines():
        return Finding("opa", "fail", f"{binary} is no OPA of 1.0 or newer", "Remove it and run `make setup`, or set opa.binary.")
    return Finding("opa", "ok", f"{version.splitlines()[0]} at {binary}")


def _answering(url: str) -> Finding:
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=TIMEOUT_S):  # noqa: S310 - the operator's own setting
            return Finding("opa", "ok", f"{url} answers")
    except (OSError, ValueError) as error:
        return Finding("opa", "fail", f"{url}: {error}", "Start it, correct opa.url, or leave it `embedded`.")
