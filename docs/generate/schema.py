"""Reading JSON Schema as pydantic and FastAPI write it: types and defaults in words."""

import json
from collections.abc import Mapping
from typing import Any

from docs.generate.markdown import code

Schema = Mapping[str, Any]
_LEAST = ("minimum", "minLength", "minItems")
_MOST = ("maximum", "maxLength", "maxItems")
_UNITS = {"string": " characters", "array": " items"}
_LARGEST = 2**53 - 1


def resolve(field: Schema, document: Schema) -> Schema:
    """The schema itself, where `field` only refers to it inside of `document`, alone or as the part that is not null."""
    choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return resolve(choices[0], document)
    reference = field.get("$ref")
    if reference is None:
        return field
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return resolve(found, document)


def type_of(field: Schema, document: Schema) -> str:
    """Type and bounds of a field in words."""
    shape = resolve(field, document)
    if "enum" in shape or "const" in shape:
        return " or ".join(code(value) for value in shape.get("enum", [shape.get("const")]))
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(type_of(choice, document) for choice in shape["anyOf"] if choice.get("type") != "null"))
    kind = shape.get("type", "any")
    if isinstance(kind, list):
        kind = " or ".join(each for each in kind if each != "null")
    return f"{_container(kind, shape, document)}{_bounds(shape)}"


def default_of(field: Schema, *, required: bool) -> str:
    """The default in words."""
    if required:
        return "required"
    default = field.get("default")
    return "" if default in (None, "", [], {}) else code(json.dumps(default).strip('"'))


def _container(kind: str, shape: Schema, document: Schema) -> str:
    """The name of a type; of lists and mappings with that of what they hold, of objects with a name that name."""
    if kind == "array":
        return f"list of {type_of(shape.get('items', {}), document)}"
    if kind == "object" and isinstance(values := shape.get("additionalProperties"), Mapping):
        return f"mapping to {type_of(values, document)}"
    if kind == "object" and "title" in shape and "properties" in shape:
        return str(shape["title"])
    return str(kind)


def _bounds(shape: Schema) -> str:
    """The bounds with the comma before them; nothing for none."""
    least, most = _number(shape, _LEAST), _number(shape, _MOST)
    unit = _UNITS.get(str(shape.get("type")), "")
    words = [f"above {shape['exclusiveMinimum']}"] if "exclusiveMinimum" in shape else []
    if least and most:
        words.append(f"{least} to {most}{unit}")
    elif least or most:
        words.append(f"at {'least' if least else 'most'} {least or most}{unit}")
    return "".join(f", {word}" for word in words)


def _number(shape: Schema, names: tuple[str, ...]) -> str:
    found = next((shape[name] for name in names if name in shape), None)
    if found is None:
        return ""
    return ("-" if found < 0 else "") + "2^53-1" if abs(found) == _LARGEST else str(found)
