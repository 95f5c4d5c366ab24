"""The question as JSON Schema: what policy authors write against. rego/schemas/ is generated from here.

A group of rules is checked against the sections and fields that it declares and no others, so a rule cannot read what its memo key
leaves out. No nullables: missing is absent (in Rego `null < 0.8` is true).
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from app.errors import BadRequest
from app.policy.reads import Read

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer"}
_FLAG = {"type": "boolean"}
_TEXTS = {"type": "array", "items": _TEXT}
_NUMBER_BY_MODEL = {"type": "object", "additionalProperties": _NUMBER}


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


SECTION_SCHEMAS: dict[str, dict[str, Any]] = {
    "tenant": _object(
        id=_TEXT,
        zone=_TEXT,
        sla_class=_TEXT,
        region=_TEXT,
        qps=_NUMBER,
        tpm=_NUMBER,
        concurrency=_NUMBER,
        rate_factors=_NUMBER_BY_MODEL,
        costs=_NUMBER_BY_MODEL,
        version=_COUNT,
    ),
    "model": _object(
        id=_TEXT,
        cost=_NUMBER,
        cached_weight=_NUMBER,
        layers=_COUNT,
        kv_heads=_COUNT,
        head_dim=_COUNT,
        kv_bytes=_NUMBER,
        kv_tokens=_COUNT,
        preallocates=_FLAG,
        signals=_TEXTS,
        sensitive=_object(
            actions=_TEXTS,
            roles=_TEXTS,
            purposes=_TEXTS,
            regions=_TEXTS,
            hours=_object(**{"from": _COUNT, "to": _COUNT}),
            clearance=_COUNT,
            mask=_TEXTS,
            approval=_FLAG,
            retention_days=_COUNT,
        ),
    ),
    "readings": _object(
        live=_COUNT,
        known=_COUNT,
        frozen=_COUNT,
        avoided=_COUNT,
        kv_max=_NUMBER,
        kv_mean=_NUMBER,
        kv_floor=_NUMBER,
        waiting=_NUMBER,
        running=_NUMBER,
        free_tokens=_NUMBER,
        held_tokens=_NUMBER,
        capacity_tokens_max=_NUMBER,
        iteration_ms=_NUMBER,
        ttft_ms=_NUMBER,
        memory=_NUMBER,
        memory_floor=_NUMBER,
        max_in_flight=_NUMBER,
        admission=_NUMBER,
    ),
    "subject": _object(
        roles=_TEXTS,
        attributes={"type": "object"},
        approval=_object(state=_TEXT, model=_TEXT, action=_TEXT, purpose=_TEXT, subject=_TEXT),
    ),
    "request": _object(action=_TEXT, priority=_TEXT, purpose=_TEXT, stream=_FLAG),
    "time": _object(minute=_COUNT, hour=_COUNT, weekday=_TEXT),
}
"""What a request's rules may read, in the order in which group names and memo keys list it."""

NODE_SECTION_SCHEMAS: dict[str, dict[str, Any]] = {
    "node": _object(name=_TEXT, kind=_TEXT, max_num_seqs=_COUNT),
    "model": SECTION_SCHEMAS["model"],
    "readings": _object(
        kv=_NUMBER,
        kv_floor=_NUMBER,
        waiting=_NUMBER,
        running=_NUMBER,
        free_tokens=_NUMBER,
        capacity_tokens=_NUMBER,
        iteration_ms=_NUMBER,
        ttft_ms=_NUMBER,
        memory=_NUMBER,
        memory_floor=_NUMBER,
    ),
}
"""What rules for nodes may read: one model on one node."""

Sections = Mapping[str, Mapping[str, Any]]
"""Schemas by section of one kind of question."""


def question_schema(sections: Sections, reads: Iterable[Read] | None = None) -> dict[str, Any]:
    """The schema of a question that holds only what is in `reads`, all of `sections` without it."""
    shown = sections if reads is None else {read.section: _part(sections[read.section], read) for read in reads}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_object(**shown)}


def _part(section: Mapping[str, Any], read: Read) -> dict[str, Any]:
    return {**section, "properties": read.of(section["properties"])}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def check_question(document: Any, sections: Sections, prefix: str) -> None:
    """Refuse what is never asked: unknown fields, other types, null. Raises BadRequest naming the field.

    `prefix` is that of the file of schemas which an author may look into.
    """
    named = next((section for section in ("tenant", "model") if isinstance(document.get(section), str)), None)
    if named:
        raise BadRequest(
            f"{named} is a text: this is a request as it goes to /decide, not a question",
            hint=f"A question holds what rules see, in the objects {', '.join(sections)}; examples/questions/batch.json is one. "
            "A running server makes one of a request and explains it: POST /decide?explain.",
            field=named,
        )
    _check(document, question_schema(sections), "", f"rego/schemas/{prefix}question.json has the types.")


def _check(value: Any, schema: Mapping[str, Any], path: str, hint: str) -> None:
    kind = schema.get("type", "")
    if value is None:
        raise BadRequest(f"{path} is null", hint="Leave out what is not known: rules see it as absent.", field=path)
    if type(value) not in _TYPES[kind]:
        raise BadRequest(f"{path} must be of type {kind}, not {value!r}", hint=hint, field=path)
    for index, item in enumerate(value if kind == "array" else ()):
        _check(item, schema["items"], f"{path}[{index}]", hint)
    for name, inner in value.items() if kind == "object" and "properties" in schema else ():
        inside = f"{path}.{name}".lstrip(".")
        if name not in schema["properties"]:
            raise BadRequest(f"{inside} is no field of a question", hint=_meant(name, schema["properties"]), field=inside)
        _check(inner, schema["properties"][name], inside, hint)


def why_undefined(reference: str, sections: Sections, reads: Iterable[Read] | None) -> str:
    """What an author may have meant by `input.…` that is not in `reads` (None: all is); empty where nothing is known."""
    schema, (head, *path) = question_schema(sections), reference.split(".")
    if head != "input" or not path:
        return ""
    if path[0] in sections and reads is not None:
        read = next((read for read in reads if read.section == path[0]), None)
        if read is None:
            return f"METADATA custom.reads lacks {path[0]}."
        if read.fields and (len(path) == 1 or (path[1] in sections[path[0]]["properties"] and path[1] not in read.fields)):
            return f"METADATA custom.reads names only {', '.join(read.names)}; it lacks {'.'.join(path[:2])}."
    for step in path:
        if step not in schema.get("properties", {step: {}}):
            return _meant(step, schema["properties"])
        schema = schema.get("properties", {}).get(step, {})
    return ""


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"Is {near[0]} meant?" if near else f"Known here: {', '.join(known)}."
