"""Wrong shapes of outputs, found before a rule is in force: in its text, in its answers to examples, in what its own tests make it answer."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.policy.folder import Problems, Rule
from app.policy.unanswered import PolicyInvalid

_UNKNOWN = object()
"""A value that the text alone does not tell."""

_STAND_INS: dict[str, Any] = {
    "code": "code",
    "message": "message",
    "status": 403,
    "waivable": False,
    "bucket": "tenant",
    "dimension": "qps",
    "limit": 1,
    "burst": 1,
    "factor": 1,
    "requests": 1,
    "input": 1,
    "output": 1,
    "cached": 1,
    "retention_days": 365,
    "fields": [],
    "signal": "kv",
    "value": 1,
}
"""By field of an element, something right: it takes the place of what only a question tells."""


class Shapes:
    """Notes each wrong field of a rule once, however many questions show it."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._told: set[tuple[str, str | None]] = set()

    def look_at_text(self, rule: Rule, tree: Mapping[str, Any]) -> None:
        """Elements as they are written, whatever their conditions; each wrong line is named."""
        text = _Text(tree["rules"])
        for line, output, element in text.elements(rule.outputs):
            try:
                rule.kind.parse(rule.name, {output: [element]})
            except PolicyInvalid as wrong:
                self._told.add((rule.name, wrong.field))
                self._problems.add(rule.file, line, wrong.message)

    def look_at(self, rule: Rule, outputs: Mapping[str, Any], where: str) -> None:
        """What the rule answered; `where` says to what."""
        try:
            rule.kind.parse(rule.name, outputs)
        except PolicyInvalid as wrong:
            if (rule.name, wrong.field) not in self._told:
                self._told.add((rule.name, wrong.field))
                output = (wrong.field or "").split(".", 1)[0]
                self._problems.add(rule.file, rule.lines.get(output), f"{wrong.message} ({where})")


class _Text:
    """What a rule's syntax tree tells of its elements: literals, named constants, and what its own functions return."""

    def __init__(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        self._by_name: dict[str, list[Mapping[str, Any]]] = {}
        for definition in definitions:
            self._by_name.setdefault(str(definition["head"]["ref"][0]["value"]), []).append(definition)

    def elements(self, outputs: Iterable[str]) -> Iterable[tuple[int | None, str, Any]]:
        """Line, output and element of each definition of one of `outputs` whose element the text tells."""
        for output in outputs:
            for definition in self._by_name.get(output, ()):
                head = definition["head"]
                element = self._value(head.get("key", {}), _mentioned(definition["body"]))
                if isinstance(element, dict):
                    element = {name: _STAND_INS.get(name) if value is _UNKNOWN else value for name, value in element.items()}
                if element is not _UNKNOWN:
                    yield head["location"]["row"], output, element

    def _value(self, term: Mapping[str, Any], local: frozenset[str]) -> Any:
        """The term's value, or _UNKNOWN. `local` are names that may mean something else here than in the rest of the file."""
        kind, value = term.get("type"), term.get("value")
        if kind in ("string", "number", "boolean", "null"):
            return value
        if kind in ("array", "set") and isinstance(value, list):
            items = [self._value(item, local) for item in value]
            return _UNKNOWN if _UNKNOWN in items else items
        if kind == "object" and isinstance(value, list) and all(key["type"] == "string" for key, _ in value):
            return {key["value"]: self._value(item, local) for key, item in value}
        if kind == "var" and value not in local:
            return self._defined(str(value), takes_arguments=False)
        if kind == "call" and isinstance(value, list) and len(value[0]["value"]) == 1:
            return self._defined(str(value[0]["value"][0]["value"]), takes_arguments=True)
        return _UNKNOWN

    def _defined(self, name: str, *, takes_arguments: bool) -> Any:
        """The value of a constant or a function that has one definition."""
        definitions = self._by_name.get(name, ())
        if len(definitions) != 1 or ("args" in definitions[0]["head"]) != takes_arguments or "value" not in definitions[0]["head"]:
            return _UNKNOWN
        head = definitions[0]["head"]
        return self._value(head["value"], _mentioned(head.get("args", ())) | _mentioned(definitions[0]["body"]) | {name})


def _mentioned(tree: Any) -> frozenset[str]:
    """Every name in a part of a syntax tree."""
    if isinstance(tree, dict):
        own = {str(tree["value"])} if tree.get("type") == "var" else set()
        return frozenset(own).union(*(_mentioned(branch) for branch in tree.values()))
    if isinstance(tree, list | tuple):
        return frozenset[str]().union(*(_mentioned(branch) for branch in tree))
    return frozenset()
