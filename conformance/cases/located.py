"""YAML as plain text in dicts and lists that remember their lines.

Every scalar stays the text that was written: what ``0x10``, ``nan`` or ``no`` means is for the grammar to say, not for
YAML's guesses. Duplicate keys, tags and empty files are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from conformance.errors import ConfigurationError
from conformance.regular import read_regular

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# A case is nested some ten levels deep; what is nested deeper than this is a mistake, and would exhaust the stack.
MAX_DEPTH = 100
# Nodes that aliases may stand for in all: aliases of aliases grow without bound.
MAX_REPEATED = 100_000
_PLAIN_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class LocatedDict(dict[str, Any]):
    """A mapping from YAML: ``file``, the ``line`` where it starts, and ``lines``, the line of each key."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file = file
        self.line = line
        self.lines: dict[str, int] = {}


class LocatedList(list[Any]):
    """A sequence from YAML: ``file``, the ``line`` where it starts, and ``lines``, the line of each item."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file = file
        self.line = line
        self.lines: list[int] = []


def read_yaml(path: Path) -> LocatedDict:
    """Read the mapping in ``path``; scalars are text.

    Raises ConfigurationError for a file that cannot be read, is not YAML, is empty or is no mapping, for a key that
    comes twice, for tags, for anchors that contain themselves or are repeated beyond measure, and for nesting without end.
    """
    node = _compose(path)
    if node is None:
        raise ConfigurationError("the file is empty", where=str(path), hint="write a mapping into it or delete the file")
    tree = _Builder(str(path)).plain(node)
    if not isinstance(tree, LocatedDict):
        raise ConfigurationError("the file's top level is no mapping", where=f"{path}:1", hint="start it with `key: value`")
    return tree


def _compose(path: Path) -> yaml.Node | None:
    """Parse ``path`` into nodes, which carry their marks."""
    try:
        node: yaml.Node | None = yaml.compose(read_regular(path).decode("utf-8"), Loader=_LOADER)
    except RecursionError as error:
        raise ConfigurationError("nested too deeply", where=str(path), hint=f"write at most {MAX_DEPTH} levels") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the file: {error}", where=str(path), hint="it must be UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigurationError(f"not YAML: {problem}", where=where, hint="mend the indentation or quote the text") from error
    return node


class _Builder:
    """Turns nodes into located dicts, lists and text."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: set[int] = set()
        self._built: set[int] = set()
        self._repeated = 0

    def plain(self, node: yaml.Node) -> Any:
        """Give the tree below ``node``."""
        if node.tag not in _PLAIN_TAGS:
            raise self._error(node, f"tag `{node.tag}` is not used here", "leave the tag out; values are read by the grammar")
        if isinstance(node, yaml.ScalarNode):
            return node.value
        if id(node) in self._open:
            raise self._error(node, "an anchor contains itself", "write the value out")
        self._count(node)
        self._open.add(id(node))
        tree = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._sequence(node)
        self._open.discard(id(node))
        return tree

    def _count(self, node: yaml.Node) -> None:
        """Refuse nesting and repetition without end: a few lines of aliases may stand for more than fits into memory."""
        if len(self._open) >= MAX_DEPTH:
            raise self._error(node, f"nested more than {MAX_DEPTH} levels deep", "write it flatter")
        if id(node) in self._built:
            self._repeated += 1 + len(node.value)
        self._built.add(id(node))
        if self._repeated > MAX_REPEATED:
            raise self._error(node, f"aliases stand for more than {MAX_REPEATED:,} values", "write out what is meant")

    def _mapping(self, node: yaml.MappingNode) -> LocatedDict:
        result = LocatedDict(self._file, _line(node))
        for key_node, value_node in node.value:
            key = self.plain(key_node)
            if not isinstance(key, str):
                raise self._error(key_node, "a key must be text", "quote it, or write the mapping as a list")
            if key in result:
                hint = f"it stands first in line {result.lines[key]}; rename or delete one"
                raise self._error(key_node, f"duplicate key `{key}`", hint)
            result[key] = self.plain(value_node)
            result.lines[key] = _line(key_node)
        return result

    def _sequence(self, node: yaml.Node) -> LocatedList:
        result = LocatedList(self._file, _line(node))
        for item in node.value:
            result.append(self.plain(item))
            result.lines.append(_line(item))
        return result

    def _error(self, node: yaml.Node, message: str, hint: str) -> ConfigurationError:
        return ConfigurationError(message, where=f"{self._file}:{_line(node)}", hint=hint)


def _line(node: yaml.Node) -> int:
    """Give the node's line, counted from 1."""
    return int(node.start_mark.line) + 1
