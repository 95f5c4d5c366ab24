"""rego/schemas/: what rules may read, generated from the Python side."""

import json
from pathlib import Path

from app.policy.kinds import KINDS
from app.policy.schema import question_schema


def schema_files() -> dict[str, str]:
    """Name and text of each generated file: for each kind the whole question, and one file per section for METADATA to name."""
    return {
        f"{kind.prefix}{name}.json": json.dumps(schema, indent=2) + "\n"
        for kind in KINDS.values()
        for name, schema in {"question": question_schema(kind.sections), **kind.sections}.items()
    }


def drifted(folder: Path) -> list[str]:
    """Names of generated files that are absent from `folder` or differ from what Python says now."""
    files = schema_files()
    return [name for name, text in files.items() if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text]


def write_schemas(folder: Path) -> None:
    """Write all generated files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (folder / name).write_text(text, "utf-8")
