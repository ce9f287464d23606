"""Cases as YAML, written as a person would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

# The C emitter, where PyYAML has it: each result shows its recipe, and the Python one took most of the time of small files.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Plain(_DUMPER):  # type: ignore[misc] # its class is chosen when it is loaded
    """Writes numbers as the cases do: a recipe holds them as text, which would be quoted."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.yaml_implicit_resolvers: dict[str, Any] = {}


def to_yaml(document: Mapping[str, Any], *, width: int = 120) -> str:
    """Give a mapping out of a case, or a whole case file, as YAML that reads back to the same text in every scalar."""
    text: str = yaml.dump(
        _texts(msgspec.to_builtins(document)),
        Dumper=_Plain,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=width,
    )
    return text


def _texts(value: Any) -> Any:
    """Give it with every scalar as the text that a case has: the emitter would mark a number as one."""
    match value:
        case dict():
            return {_texts(key): _texts(item) for key, item in value.items()}
        case list():
            return [_texts(item) for item in value]
        case bool():
            return str(value).lower()
    return str(value)
