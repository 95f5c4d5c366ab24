"""Shared by all tests: our own environment variables never leak in, and real servers come from tests/fixtures."""

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

for _name in [name for name in os.environ if name.startswith("SLUICE_") and name != "SLUICE_SAMPLES"]:
    del os.environ[_name]

# Other examples each time, so that many runs look further than one that takes twice as long. How fast they come
# says something about the machine and what else runs on it, nothing about Sluice.
settings.register_profile("suite", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

pytest_plugins = [
    "tests.fixtures.engine",
    "tests.fixtures.opa",
    "tests.fixtures.policy",
    "tests.fixtures.postgres",
    "tests.fixtures.serve",
    "tests.fixtures.signing",
    "tests.fixtures.log",
    "tests.fixtures.subjects",
    "tests.fixtures.audit_process",
    "tests.fixtures.verifiers",
    "tests.fixtures.report_font",
    "tests.fixtures.making",
    "tests.fixtures.made_nights",
    "tests.fixtures.office",
    "tests.fixtures.reports_api",
]


@pytest.fixture(autouse=True)
def _log_as_at_the_start() -> Iterator[None]:
    """A command that a test runs in this process sets the log up; no test after it finds it so."""
    yield
    structlog.reset_defaults()
