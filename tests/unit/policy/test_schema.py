"""The generated schemas."""

from pathlib import Path

from app.catalog.models import ModelSpec
from app.policy.examples import EXAMPLES
from app.policy.reads import Read
from app.policy.schema import SECTION_SCHEMAS, question_schema
from app.policy.schema_files import drifted, write_schemas
from app.settings import RULES


def test_the_schemas_in_the_policy_folder_are_current() -> None:
    """rego/schemas says what Python says; `sluice policy schemas --write` renews it."""
    assert drifted(RULES / "schemas") == []


def test_a_schema_of_some_sections_has_no_others() -> None:
    """What a group does not declare is not in its schema, and nothing else is allowed."""
    schema = question_schema(SECTION_SCHEMAS, [Read("readings")])

    assert (list(schema["properties"]), schema["additionalProperties"]) == (["readings"], False)


def test_drift_is_named(tmp_path: Path) -> None:
    """A file that was changed by hand is named."""
    write_schemas(tmp_path)
    (tmp_path / "time.json").write_text("{}")

    assert drifted(tmp_path) == ["time.json"]


def test_everything_a_model_says_is_in_the_schema() -> None:
    """Each fact of the fullest model spec is a property that rules may read."""
    spec = ModelSpec.model_validate(
        {
            "id": "m", "layers": 1, "kv_heads": 1, "head_dim": 1, "kv_bytes": 2,
            "sensitive": {"roles": ["r"], "hours": {"from": 1, "to": 2}, "clearance": 1, "retention_days": 365},
        }
    )  # fmt: skip
    facts, schema = spec.facts(), SECTION_SCHEMAS["model"]["properties"]

    assert set(facts) - set(schema) == set()
    assert set(facts["sensitive"]) - set(schema["sensitive"]["properties"]) == set()


def test_examples_hold_only_what_the_schema_knows() -> None:
    """Every field of every example question is in the schema."""
    for example in EXAMPLES.values():
        assert set(example) == set(SECTION_SCHEMAS)
        for section, value in example.items():
            assert set(value) - set(SECTION_SCHEMAS[section]["properties"]) == set()
