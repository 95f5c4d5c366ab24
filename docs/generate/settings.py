"""docs/reference/settings.md, from the tree in app/settings.py and the model specs of app/catalog/models.py."""

from app.catalog.models import ModelSpec
from app.settings import Settings
from docs.generate.markdown import code, page, table
from docs.generate.schema import Schema, default_of, resolve, type_of

INTRO = """
Settings come from four places; the later wins:

1. the file given with `--config` (without it `sluice serve` lays down `sluice.yaml` in `--var` and uses that),
2. environment variables,
3. `--set section.name=value`, which may be repeated,
4. `--port` of `sluice serve`, which replaces the port in `listen`.

An unknown setting, a wrong type, or a key that stands twice stops the start and names the field.
Lists are JSON in an environment variable.
The paths `models`, `policy.path` and `secrets.path` are relative to the folder of the settings file, without one to the working directory.

A letter and a number in brackets, such as A1, say what asked for a figure: a row of the [list of requirements](../explanation.md#requirements).
"""

MODELS = """
A list with one entry for each model. The file is read again when it changes; one that is wrong changes nothing,
and `/readyz` says why. Rules see all of an entry but `default_max_tokens`.
"""

HEAD = ("setting", "environment", "type", "default", "meaning")


def settings_page() -> str:
    """Every setting with its environment variable, type, default and meaning; and the fields of models.yaml."""
    schema = Settings.model_json_schema()
    plain, sections, lists = [], [], []
    for name, field in schema["properties"].items():
        shape, item = resolve(field, schema), resolve(field.get("items", {}), schema)
        if "properties" in shape:
            rows = [_row(f"{name}.{child}", each, schema) for child, each in shape["properties"].items()]
            sections.append(f"## {name}\n\n{shape['description']}\n\n{table(HEAD, rows)}")
            continue
        plain.append(_row(name, field, schema))
        if "properties" in item:
            lists.append(f"## One of {code(name)}\n\n{item['description']}\n\n{_fields(item, schema)}")
    specs = ModelSpec.model_json_schema()
    parts = [f"### {name}\n\n{shape['description']}\n\n{_fields(shape, specs)}" for name, shape in specs["$defs"].items()]
    models = f"## The file `models.yaml`\n\n{MODELS.strip()}\n\n{_fields(specs, specs)}"
    return page("Settings", INTRO.strip(), "## Top level", table(HEAD, plain), *sections, *lists, models, *parts)


def _row(path: str, field: Schema, schema: Schema) -> tuple[str, ...]:
    variable = f"SLUICE_{path.upper().replace('.', '__')}"
    return code(path), code(variable), type_of(field, schema), default_of(field, required=False), field.get("description", "")


def _fields(shape: Schema, schema: Schema) -> str:
    needed = shape.get("required", ())
    rows = [
        (code(name), type_of(field, schema), default_of(field, required=name in needed), field.get("description", ""))
        for name, field in shape["properties"].items()
    ]
    return table(("field", "type", "default", "meaning"), rows)
