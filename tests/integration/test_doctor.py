"""`sluice doctor` names what is missing, with a remedy, and changes nothing."""

import json
import os
import socket

import pynvml
import pytest
from sqlalchemy.engine import make_url
from typer.testing import CliRunner

from tests.fixtures.doctor import COMMAND, examine, external
from tests.fixtures.engine import free_port
from tests.fixtures.nvml import Device, Nvml
from tests.fixtures.serve import Serve
from tests.fixtures.users import as_nobody

pytestmark = pytest.mark.usefixtures("forbidden")


def test_a_complete_machine_is_ok(tmp_path, opa_binary):
    """Where everything is there each line is ok, the exit code is 0, and nothing was made."""
    code, findings = examine("--var", str(tmp_path / "var"))

    assert {name: finding["level"] for name, finding in findings.items()} == dict.fromkeys(
        (
            "python",
            "packages",
            "sm3",
            "sm2",
            "var",
            "disk",
            "settings",
            "port",
            "opa",
            "database",
            "keys",
            "font",
            "gpus",
            "clauses",
            "reports",
            "reportkeys",
            "logroot",
            "nightly",
        ),
        "ok",
    )
    assert code == 0
    assert list(tmp_path.iterdir()) == []


def test_text_has_one_line_each_and_the_remedy_below(tmp_path, opa_binary):
    """For people each finding is a line, and what to do stands below what failed."""
    ran = CliRunner().invoke(COMMAND, ["--var", str(tmp_path), "--port", str(free_port()), "--set", "opa.binary=/nowhere/opa"])

    assert "ok    settings  defaults and environment\n" in ran.stdout
    assert "fail  opa       opa.binary: /nowhere/opa is not a program\n                Name an executable opa" in ran.stdout
    assert ran.exit_code == 6


def test_a_font_that_reports_cannot_be_set_in_is_named(tmp_path):
    """A file that is no font fails with what to set; the machine is not complete."""
    (tmp_path / "font.ttf").write_text("no font")
    code, findings = examine("--var", str(tmp_path / "var"), "--set", f"font={tmp_path}/font.ttf")

    assert findings["font"]["level"] == "fail"
    assert findings["font"]["message"].startswith(f"{tmp_path}/font.ttf: not a TrueType font that can be embedded")
    assert "SLUICE_FONT" in findings["font"]["remedy"]
    assert code == 6


def test_without_a_font_serve_runs(tmp_path, monkeypatch):
    """Where set-up could fetch no font the finding is a warning with the remedy: everything but the reports works."""
    monkeypatch.setattr("app.reports.layout.font.FETCHED", tmp_path / "none.ttf")
    _, findings = examine("--var", str(tmp_path / "var"))

    assert findings["font"]["level"] == "warn"
    assert findings["font"]["message"] == f"{tmp_path}/none.ttf: No such file or directory"


def test_wrong_settings_are_named(tmp_path):
    """A setting that does not exist is named with its file, and exits with the code for usage."""
    (tmp_path / "sluice.yaml").write_text("opa: {timeout: 5}\n")
    code, findings = examine("--var", str(tmp_path))

    assert findings["settings"]["level"] == "fail"
    assert findings["settings"]["message"] == f"{tmp_path}/sluice.yaml: opa.timeout: Extra inputs are not permitted"
    assert code == 2


def test_a_server_of_this_folder_is_no_obstacle(serve: Serve):
    """Beside the serve of this var its port, the one really used, and its database are ok."""
    code, findings = examine("--var", str(serve.var))

    assert findings["port"]["message"] == f"127.0.0.1:{serve.port}, served by this serve (pid {serve.process.pid})"
    assert findings["database"]["message"].endswith("; answers beside serve")
    assert {finding["level"] for finding in findings.values()} == {"ok"}
    assert code == 0


def test_a_database_that_only_serve_runs_is_said_not_to_run(tmp_path, opa_binary):
    """Without a serve the embedded database is able to run, and does not."""
    _, findings = examine("--var", str(tmp_path))

    assert findings["database"]["message"].endswith("; not running now, it runs beside serve only")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_closed_folder_is_a_finding(tmp_path, monkeypatch):
    """A var in a folder that this user may not enter is named with its remedy, and the rest is looked at all the same."""
    monkeypatch.chdir("/")
    tmp_path.chmod(0o700)
    examine("--var", str(tmp_path / "var"))  # what the command imports may lie where only root reads
    with as_nobody():
        code, findings = examine("--var", str(tmp_path / "var"))

    assert findings["var"]["level"] == "fail"
    assert findings["var"]["message"].endswith("cannot be written")
    assert "--var DIR" in findings["var"]["remedy"]
    assert "database" in findings
    assert code == 6


def test_a_port_in_use_is_named(tmp_path):
    """A port that something listens on is found before serve trips over it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, findings = examine("--var", str(tmp_path), port=other.getsockname()[1])

    assert findings["port"]["level"] == "fail"
    assert "Address already in use" in findings["port"]["message"]
    assert "--port N" in findings["port"]["remedy"]
    assert code == 6


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """A var below a file can never be made."""
    (tmp_path / "file").touch()
    _, findings = examine("--var", str(tmp_path / "file" / "var"))

    assert findings["var"] == {
        "name": "var",
        "level": "fail",
        "message": f"{tmp_path}/file cannot be written",
        "remedy": "Give another folder with --var DIR, or mend its owner.",
    }


def test_a_program_that_is_no_opa_is_named(tmp_path):
    """A program that says nothing of Rego v1 is not taken for OPA."""
    fake = tmp_path / "opa"
    fake.write_text("#!/bin/sh\necho 'Version: 0.70.0'\n")
    fake.chmod(0o755)
    _, findings = examine("--var", str(tmp_path), "--set", f"opa.binary={fake}")

    assert findings["opa"]["level"] == "fail"
    assert findings["opa"]["message"] == f"{fake} is no OPA of 1.0 or newer"


def test_an_opa_elsewhere_is_asked(tmp_path):
    """An OPA of the operator's own that does not answer is named."""
    _, findings = examine("--var", str(tmp_path), "--set", f"opa.url=http://127.0.0.1:{free_port()}")

    assert findings["opa"]["level"] == "fail"
    assert "Connection refused" in findings["opa"]["message"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops rights")
def test_a_closed_parent_is_told(tmp_path):
    """Where the server's user cannot reach var, doctor says which folder bars the way and where data will lie."""
    tmp_path.chmod(0o700)
    _, findings = examine("--var", str(tmp_path / "var"))

    assert "is closed to it, so programs and data lie in /var/lib/sluice" in findings["database"]["message"]


def test_a_database_elsewhere_is_tried_with_each_role(tmp_path, database_urls):
    """Each of the four URLs is tried, and its role told."""
    urls = database_urls
    findings = external(tmp_path, url=urls.registry, owner_url=urls.owner, intake_url=urls.intake, log_url=urls.log)

    assert {name: findings[name]["message"] for name in ("database", "owner", "intake", "log")} == {
        "database": "PostgreSQL 18 as sluice_registry",
        "owner": "PostgreSQL 18 as sluice_owner",
        "intake": "PostgreSQL 18 as sluice_intake",
        "log": "PostgreSQL 18 as sluice_log",
    }


def test_a_superuser_or_a_wrong_password_is_refused(tmp_path, database_urls, postgres_server):
    """A superuser is no role for serve, and no password is ever shown."""
    urls = database_urls
    wrong = make_url(urls.log).set(password="s3cret").render_as_string(hide_password=False)
    findings = external(tmp_path, url=postgres_server.admin_url, owner_url=urls.owner, intake_url=urls.intake, log_url=wrong)

    assert findings["database"]["message"] == "database.url: a superuser"
    assert "password authentication failed" in findings["log"]["message"]
    assert "s3cret" not in json.dumps(findings)


def test_a_missing_url_is_named(tmp_path):
    """With a server of one's own every duty needs its URL; the first that is missing is named."""
    findings = external(tmp_path, url="postgresql://r:x@127.0.0.1/sluice")

    assert findings["database"]["level"] == "fail"
    assert findings["database"]["message"].startswith("database.owner_url: missing")


@pytest.fixture
def gpus(monkeypatch):
    """The library of this machine's GPUs, and a settings file whose engine runs on GPU-0."""
    library = Nvml([Device("GPU-0"), Device("GPU-1", error=pynvml.NVML_ERROR_NOT_SUPPORTED)])
    library.install(monkeypatch)
    monkeypatch.setattr("shutil.which", lambda name, **_: None)
    return library


def on_a_gpu(folder, more=""):
    (folder / "sluice.yaml").write_text(f'engines: [{{name: a, url: "http://127.0.0.1:9", models: [m], gpus: [GPU-0]}}]\n{more}')
    return examine("--var", str(folder))[1]["gpus"]


def test_gpus_are_told_in_words(tmp_path, gpus):
    """How many there are, and which of them does not tell its memory."""
    assert on_a_gpu(tmp_path)["message"] == "NVML: 2 GPUs or MIG instances, unknown: GPU-1 not_supported"


def test_gpus_that_engines_count_on_and_nobody_reports(tmp_path, gpus):
    """What each source says, and what to do; an exporter elsewhere, or a shared telemetry process, may report them."""
    gpus.failure = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    finding = on_a_gpu(tmp_path)
    assert (finding["level"], finding["message"]) == ("warn", "NVML: driver mismatch; nvidia-smi: no program")
    assert "gpus.dcgm" in finding["remedy"]

    finding = on_a_gpu(tmp_path, 'gpus: {nvml: off, nvidia_smi: off, dcgm: ["http://h:9400"]}\n')
    assert (finding["level"], finding["message"]) == ("ok", "DCGM exporters: 1")
    finding = on_a_gpu(tmp_path, 'telemetry: {url: "http://h:8081"}\n')
    assert (finding["level"], finding["message"]) == ("ok", "read by the telemetry process at http://h:8081")
