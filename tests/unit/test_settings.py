"""Settings: file, environment and overrides, the later winning; every mistake names its field."""

from errno import EACCES
from pathlib import Path

import pytest

from app.cli.options import settings_of
from app.errors import ConfigError
from app.settings import RULES, load_settings


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sluice.yaml"
    path.write_text("listen: 127.0.0.1:9000\nopa: {timeout_ms: 60}\nmodels: m.yaml\n", "utf-8")
    return path


def test_the_environment_beats_the_file_and_an_override_beats_both(file, monkeypatch):
    """--set wins over SLUICE_…, which wins over sluice.yaml; what nobody names keeps its default."""
    monkeypatch.setenv("SLUICE_OPA__TIMEOUT_MS", "70")
    monkeypatch.setenv("SLUICE_LEASE__TTL_MS", "5000")

    assert load_settings(file).opa.timeout_ms == 70
    assert load_settings(file, ("opa.timeout_ms=80",)).opa.timeout_ms == 80
    assert load_settings(file).lease.ttl_ms == 5000
    assert load_settings(file).listen == "127.0.0.1:9000"
    assert load_settings(file).lease.keep_ms == 60_000


def test_relative_paths_are_relative_to_the_file(file):
    """models.yaml lies beside sluice.yaml, wherever serve was started from."""
    assert load_settings(file).models == str(file.parent / "m.yaml")


def test_the_rules_that_come_with_sluice_are_the_default(file):
    """`rego` beside the file is used where it exists; without it the shipped rules are."""
    assert load_settings(file).policy.path == str(RULES)
    (file.parent / "rego").mkdir()
    assert load_settings(file).policy.path == str(file.parent / "rego")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("opa: {timeout_ms: fast}", "opa.timeout_ms"),
        ("opa: {timeout: 5}", "opa.timeout"),
        ("listen: 8080", "listen"),
        ("listen: a\nlisten: b", "twice"),
        ("- 1", "mapping"),
        ("1: x", "1 is no name of a setting"),
        ("", "mapping"),
        ("engines: [{name: a, url: 'http://x', models: [m]}, {name: a, url: 'http://y', models: [m]}]", "'a' stands twice"),
        ("engines: [{name: a, url: 'file:///etc/passwd', models: [m]}]", r"engines\[0\].url"),
        ("a: [", "sluice.yaml"),
        ("{{ a }}: 1", "sluice.yaml"),
        ("listen: 2024-13-45", "sluice.yaml"),
        ("a: " + "[" * 2000, "sluice.yaml"),
    ],
)
def test_a_wrong_file_names_what_is_wrong(file, text, named):
    """Nothing starts on half-understood settings."""
    file.write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=named):
        load_settings(file)


@pytest.mark.parametrize("override", ["opa.timeout_ms", "=5", "opa.timeout_ms=[", "opa.nonsense=1"])
def test_a_wrong_override_is_refused(file, override):
    """A misspelt --set never passes silently."""
    with pytest.raises(ConfigError):
        load_settings(file, (override,))


def test_a_wrong_value_is_told_with_where_it_came_from(file, monkeypatch):
    """File, environment and --set are told apart, by the last of them that has the wrong value; a value is never repeated."""
    file.write_text("opa: {timeout_ms: 70, binary: [1]}\nlease: {ttl_ms: 1}\nengines: [{name: a, url: 'http://x'}]", "utf-8")
    monkeypatch.setenv("SLUICE_OPA__TIMEOUT_MS", "5x")
    monkeypatch.setenv("SLUICE_LEASE__KEEP_MS", "1x")
    with pytest.raises(ConfigError) as refused:
        load_settings(file, ("lease.ttl_ms=2x", "audit.passphrase=hunter2"))

    no_number = "Input should be a valid integer, unable to parse string as an integer"
    assert sorted(refused.value.message.split("; ")) == sorted(
        [
            f"environment: opa.timeout_ms: {no_number}",
            f"lease.keep_ms: {no_number}",
            f"{file}: opa.binary: Input should be a valid string",
            "engines[0].models: Field required",
            f"--set: lease.ttl_ms: {no_number}",
            "audit.passphrase: must be file:PATH or fd:N, so that the passphrase stands in no settings file",
        ]
    )
    assert "hunter2" not in str(refused.value)


def test_a_section_in_the_environment_is_json(monkeypatch):
    """What is no JSON there is a wrong setting like any other, without its value."""
    monkeypatch.setenv("SLUICE_ENGINES", "[hunter2")
    with pytest.raises(ConfigError, match=r'^environment: .*"engines"') as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    """The error says which file."""
    with pytest.raises(ConfigError, match=r"absent\.yaml"):
        load_settings(tmp_path / "absent.yaml")


def test_a_file_that_this_user_may_not_read_is_told_by_where_it_came_from(tmp_path, monkeypatch):
    """The option is named where it named the file; of the one that lies in --var, which nobody named, the file alone."""
    (tmp_path / "sluice.yaml").write_text("", "utf-8")

    def closed(_path, *_encoding):
        raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", closed)
    told = []
    for option in (None, tmp_path / "sluice.yaml"):
        with pytest.raises(ConfigError) as refused:
            settings_of(option, tmp_path, None)
        told.append((refused.value.message, refused.value.field, refused.value.advice))

    problem = f"{tmp_path}/sluice.yaml: Permission denied"
    assert told == [
        (problem, None, "Let this user read it."),
        (f"--config: {problem}", "--config", "Name a file that is there and that this user may read with --config."),
    ]


@pytest.mark.parametrize(
    ("text", "mode"),
    [("off", "off"), ("on", "on"), ("false", "off"), ("true", "on"), ("shadow", "shadow"), ("'off'", "off"), ('"on"', "on"), ("no", "off")],
)
def test_modes_of_rules_may_be_written_without_quotes(file, text, mode):
    """To YAML `off` is false and `on` is true; a mode is meant all the same."""
    file.write_text(f"policy: {{rules: {{latency: {text}}}}}\n", "utf-8")

    assert load_settings(file).policy.rules == {"latency": mode}


def test_modes_of_rules_are_laid_over_each_other_by_name(file, monkeypatch):
    """The file, the environment as JSON or by name, and --set each name some rules; the later wins for the same one."""
    file.write_text("policy: {rules: {a: off, b: off, c: off, d: off}}\n", "utf-8")
    monkeypatch.setenv("SLUICE_POLICY__RULES", '{"b": "shadow", "c": "shadow"}')
    monkeypatch.setenv("SLUICE_POLICY__RULES__D", "on")

    assert load_settings(file, ("policy.rules.c=on", "policy.rules.e=off")).policy.rules == {
        "a": "off",
        "b": "shadow",
        "c": "on",
        "d": "on",
        "e": "off",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("policy: {shadow: [latency]}", r"policy\.shadow: Extra inputs are not permitted"),
        ("policy: {rules: {latency: dark}}", r"policy\.rules\.latency: .*'on', 'off' or 'shadow'"),
        ("policy: {rules: {latency: 1}}", r"policy\.rules\.latency"),
        ("policy: {rules: [latency]}", r"policy\.rules"),
    ],
)
def test_a_wrong_mode_and_an_unknown_setting_are_named(file, text, says):
    """The message names the field."""
    file.write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=says):
        load_settings(file)


def test_off_needs_no_quotes(file):
    """What YAML takes for false is the word that the operator wrote, also where the other word is `auto`."""
    file.write_text("gpus: {nvml: off, nvidia_smi: auto}", "utf-8")
    assert (load_settings(file).gpus.nvml, load_settings(file).gpus.nvidia_smi) == ("off", "auto")

    file.write_text("gpus: {nvml: on}", "utf-8")
    with pytest.raises(ConfigError, match=r"gpus\.nvml: .*'auto' or 'off'"):
        load_settings(file)
