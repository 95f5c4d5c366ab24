"""Reading YAML files that people write: settings, the catalogue, examples."""

from pathlib import Path
from typing import Any

import yaml

from app.errors import ConfigError

_HOW_TO_WRITE = "Put a text with braces, a colon or # in quotes; indent with spaces, not with tabs; name each key once."


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML that refuses the same key twice, because the second would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, *, named_by: str = "") -> Any:
    """The document in `path`, duplicate keys refused; `named_by`: the setting or option that names it, if any.

    Raises ConfigError with file and line.
    """
    try:
        return yaml.load(path.read_text("utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader subclass
    except OSError as error:
        what = f"{named_by}: {path}" if named_by else path
        problem = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise ConfigError(f"{what}: {problem}", hint=_remedy(error, named_by), field=named_by or None) from None
    except (yaml.YAMLError, AttributeError, TypeError, ValueError, RecursionError) as error:  # PyYAML raises all of these on bad files
        raise ConfigError(f"{path}: {error}", hint=_HOW_TO_WRITE) from None


def _remedy(error: OSError, named_by: str) -> str:
    if named_by:
        return f"Name a file that is there and that this user may read with {named_by}."
    return "Let this user read it." if isinstance(error, PermissionError) else "Restore it from the repository."
