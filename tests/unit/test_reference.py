"""The generated reference: complete, and the same as the code."""

import re

import pytest

from app.audit.records.kinds import ENVELOPE, KINDS, MEMBERS
from app.cli import app as cli
from app.decision.reasons import CODES
from app.errors import SluiceError
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings
from app.settings import Settings
from docs.generate.commands import commands
from docs.generate.errors import error_classes
from docs.generate.reference import FOLDER, pages
from docs.generate.rules import denials


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """The pages as the code says them now."""
    return pages()


def test_files_are_what_the_code_says(generated):
    """No file of the reference is stale; `make reference` writes them anew."""
    stale = [name for name, text in generated.items() if (FOLDER / name).read_text("utf-8") != text]
    assert stale == [], "run `make reference` and commit what it wrote"


def test_no_other_files(generated):
    """The folder holds generated pages and nothing else, so nobody edits what the next run would not write."""
    assert {path.name for path in FOLDER.iterdir()} == set(generated)


def test_every_setting_is_listed(generated):
    """Each setting stands on its page with its environment variable."""
    for name, field in Settings.model_fields.items():
        children = getattr(field.annotation, "model_fields", None)
        for path in [f"{name}.{child}" for child in children] if children else [name]:
            assert f"| `{path}` | `SLUICE_{path.upper().replace('.', '__')}` |" in generated["settings.md"]
    for name in EngineSettings.model_fields:
        assert f"| `{name}` |" in generated["settings.md"]


def test_every_metric_is_listed(generated):
    """Each family of the registry stands on its page under the name that Prometheus scrapes."""
    listed = set(re.findall(r"^\| `(\w+)` \|", generated["metrics.md"], re.MULTILINE))
    registered = {family.name + {"counter": "_total", "info": "_info"}.get(family.type, "") for family in Metrics().registry.collect()}
    assert registered == listed


def test_every_error_is_listed_once(generated):
    """Each code of an error stands on its page once, with its status and what to do."""
    codes = [error.code for error in error_classes()]
    assert sorted(codes) == sorted(set(codes))
    for error in error_classes():
        assert f"| `{error.code}` | {error.status} | {error.exit_code} |" in generated["errors.md"]


def test_every_kind_of_entry_is_listed(generated):
    """Each kind stands on its page with each member that it requires, and each member is explained."""
    for name, kind in KINDS.items():
        (row,) = [line for line in generated["log-entries.md"].splitlines() if line.startswith(f"| `{name}` |")]
        assert all(f"`{member}`" in row for member in (*kind.required, *kind.optional, *kind.outcomes))
    for name in (*MEMBERS, *ENVELOPE):
        assert f"\n| `{name}` | " in generated["log-entries.md"]


def test_error_classes_are_found_in_every_room():
    """Errors of rooms that nothing else imports are found, too."""
    codes = {error.code for error in error_classes()}
    assert {"bad_request", "page_broken", "lease_ended", "policy_conflict", "child_failed"} <= codes
    assert all(issubclass(error, SluiceError) and error.__doc__ for error in error_classes())


def test_every_reason_is_listed(generated):
    """Each reason code of Sluice and of the shipped rules stands on its page."""
    for code in CODES:
        assert f"| `{code}` |" in generated["reasons.md"]
    for denial in denials():
        assert f"| `{denial.code}` | {denial.rule} |" in generated["reasons.md"]


def test_reasons_of_rules_are_read_from_their_text():
    """Codes are found whether a rule writes the object or calls a function that makes it."""
    assert {"unknown_tenant", "sensitive_role", "approval_required"} <= {denial.code for denial in denials()}


def test_every_command_is_listed(generated):
    """Each registered command stands on its page with each of its options."""
    paths = [path for path, _ in commands()]
    assert {command.name or getattr(command.callback, "__name__", "") for command in cli.registered_commands} <= {
        path.removeprefix("sluice ") for path in paths
    }
    for path, command in commands():
        assert f"\n## {path}\n" in generated["cli.md"]
        for parameter in command.params:
            assert (
                f"| `{', '.join(parameter.opts)}` |" in generated["cli.md"] or f"| `{str(parameter.name).upper()}` |" in generated["cli.md"]
            )


def test_every_route_is_listed(generated):
    """The hot routes, which bypass the framework, stand beside all others."""
    for route in ("POST /decide", "POST /decide/batch", "POST /leases/{decision_id}/settle", "PATCH /quotas/{tenant}", "GET /readyz"):
        assert f"\n## {route}\n" in generated["http.md"]
