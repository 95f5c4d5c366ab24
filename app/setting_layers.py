"""Settings of several places, laid over each other, and which of the places a wrong one came from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.errors import ConfigError
from app.fields import explain_each
from app.yaml_file import read_yaml


class Layer(NamedTuple):
    """Settings that come from one place."""

    source: str
    given: dict[str, Any]

    @classmethod
    def of_file(cls, file: Path, *, named_by: str) -> Self:
        """What a settings file has, which the option `named_by` names. Raises ConfigError."""
        document = read_yaml(file, named_by=named_by)
        if not isinstance(document, dict):
            raise ConfigError(f"{file}: an empty or list document; expected settings as a mapping")
        if strange := [name for name in document if not isinstance(name, str)]:
            raise ConfigError(f"{file}: {strange[0]!r} is no name of a setting")
        return cls(str(file), document)

    @classmethod
    def of_option(cls, text: str) -> Self:
        """What `section.name=value` behind --set says. Raises ConfigError."""
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise ConfigError(f"--set {text}: expected section.name=value")
        try:
            tree: Any = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set {path}: the value is not YAML") from None
        for part in reversed(path.split(".")):
            tree = {part: tree}
        return cls("--set", dict(tree))

    def reaches(self, path: Sequence[int | str]) -> int:
        """How many steps of `path` lead somewhere here."""
        below: Any = self.given
        for depth, part in enumerate(path):
            if not (part in below if isinstance(below, dict) else isinstance(below, list) and part in range(len(below))):
                return depth
            below = below[part]
        return len(path)


def laid_over_each_other(layers: Sequence[Layer]) -> dict[str, Any]:
    """All of them, the later on the earlier: sections merge, everything else replaces."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _laid_over(merged, layer.given)
    return merged


def explain_by_layer(error: ValidationError, layers: Sequence[Layer]) -> str:
    """All wrong settings, each behind the last place that has it."""
    wrong: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors():
        nearest = max(reversed(layers), key=lambda layer: layer.reaches(detail["loc"]))
        wrong.setdefault(nearest.source, []).append(detail)
    return "; ".join(f"{source}: {explain_each(details)}" for source, details in wrong.items())


def _laid_over(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` on `under`: sections merge, everything else replaces."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        merged[name] = _laid_over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
