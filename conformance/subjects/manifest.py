"""A subject's manifest, ``adapter.yaml``: how to start it, its limits, by which profile it is judged.

``docs/protocol.md`` is the manual of its keys.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from yaml.error import MarkedYAMLError

from conformance.cases.model import Authority
from conformance.errors import ConfigurationError, UsageError
from conformance.places import adapters_root, cache_root
from conformance.regular import read_regular
from conformance.subjects.shell_words import put_in

FILE_NAME = "adapter.yaml"
AUTHORITIES_FOLDER = Path(__file__).parent / "authorities"

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
# Of a name are made the names of files.
_LONGEST_NAME = 64
_LARGEST_LIMIT = 1e18
# Values in a manifest, those that aliases stand for each time: far more than any author writes.
_MOST_NODES = 10_000
_TEXT = "It must be text that UTF-8 can hold, without NUL."
_SIZE = re.compile(r"(\d+)\s*([A-Za-z]*)")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")  # for the name of a folder
_PLACEHOLDER = re.compile(r"(?<!\$)\{(\w*)\}")  # not the shell's ${NAME}


class SubjectLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one request: ``time`` and ``hello`` in seconds, ``memory`` (resident) and ``line`` (one answer) in bytes.

    ``case``: seconds for all requests of one case; None is ten times the time of one.
    """

    time: float = 60.0
    case: float | None = None
    memory: int = 2 * GIB
    line: int = 64 * MIB
    hello: float = 30.0


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """How to run one subject. Placeholders are already replaced.

    ``build`` holds shell commands, run in ``folder``, that need the programs in ``needs``; what they make is in ``built``.
    """

    name: str
    language: str
    command: tuple[str, ...]
    build: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    limits: SubjectLimits = SubjectLimits()
    profile: Authority = "llama.cpp"
    env: dict[str, str] = {}
    divergences: Path | None = None
    one_shot: bool = False
    folder: Path
    source: Path
    built: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the process starts with: the harness's own, then ``env``.

        A subject that runs on the harness's interpreter also finds the harness's packages, wherever it is started.
        """
        merged = {**os.environ, **self.env}
        if self.command[0] == sys.executable:
            packages = str(Path(__file__).parents[2])
            merged["PYTHONPATH"] = os.pathsep.join(filter(None, [packages, merged.get("PYTHONPATH", "")]))
        return merged

    @property
    def build_hint(self) -> str:
        """What a user types to build the subject, or an empty string."""
        path = self.folder if self.source.name == FILE_NAME else self.source
        return f"gguf-conformance build {shlex.quote(str(path))}" if self.build else ""


class _WrittenLimits(msgspec.Struct, forbid_unknown_fields=True):
    time: float | None = None
    case: float | None = None
    memory: int | str | None = None
    line: int | str | None = None
    hello: float | None = None


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """The manifest as its author writes it."""

    name: str
    language: str
    command: list[str]
    build: list[str | list[str]] | None = None
    needs: list[str] = []
    limits: _WrittenLimits = msgspec.field(default_factory=_WrittenLimits)
    profile: Literal["llama.cpp", "gguf-py", "spec"] = "llama.cpp"
    env: dict[str, str] = {}
    divergences: str | None = None
    one_shot: bool = False


class _Document:
    """A YAML mapping that knows the line of each of its keys."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.lines: dict[str, int] = {}
        self._nodes = 0
        self.data = self._parse(_read(source))

    def error(self, message: str, *, key: str = "", hint: str = "") -> ConfigurationError:
        line = self.lines.get(key)
        return ConfigurationError(message, where=f"{self.source}:{line}" if line else str(self.source), hint=hint)

    def _parse(self, text: str) -> dict[str, Any]:
        try:
            loader = yaml.SafeLoader(text)
            root = loader.get_single_node()
            self._check_aliases(root)
            data = loader.construct_document(root) if root is not None else None
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: of what is no date or number, but tagged so
            raise self._not_yaml(error) from None
        except (AttributeError, LookupError) as error:  # the same: PyYAML looks into what it did not find
            raise self._not_yaml(ValueError("a value is not what its tag says")) from error
        if not isinstance(root, yaml.MappingNode) or not isinstance(data, dict):
            raise self.error(
                f"a manifest is a mapping of keys, not {_kind(data)}", hint="Start with `name:`, `language:` and `command:`."
            )
        self._note_lines(root, "")
        return data

    def _not_yaml(self, error: Exception) -> ConfigurationError:
        mark = getattr(error, "problem_mark", None)
        where = f"{self.source}:{mark.line + 1}:{mark.column + 1}" if mark else str(self.source)
        problem = "nested too deep" if isinstance(error, RecursionError) else getattr(error, "problem", None) or _first_line(error)
        return ConfigurationError(f"not YAML: {problem}", where=where, hint="Quote text that holds `:`, `{`, `#` or `%`.")

    def _check_aliases(self, node: yaml.Node | None, around: frozenset[int] = frozenset()) -> None:
        """Refuse what contains itself, and aliases of aliases: whoever walks the data would not come to an end."""
        if node is None:
            return
        self._nodes += 1
        if id(node) in around:
            raise MarkedYAMLError(problem="an anchor contains itself", problem_mark=node.start_mark)
        if self._nodes > _MOST_NODES:
            raise MarkedYAMLError(problem=f"more than {_MOST_NODES:,} values", problem_mark=node.start_mark)
        if isinstance(node, yaml.CollectionNode):
            for part in itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value:
                self._check_aliases(part, around | {id(node)})

    def _note_lines(self, node: yaml.MappingNode, prefix: str) -> None:
        for key, value in node.value:
            path = f"{prefix}{key.value}"
            first = self.lines.get(path)
            self.lines[path] = key.start_mark.line + 1
            if first is not None:
                raise self.error(f"`{path}` stands twice, first in line {first}", key=path, hint="Keep one of them.")
            if isinstance(value, yaml.MappingNode):
                self._note_lines(value, f"{path}.")


def _read(source: Path) -> str:
    try:
        return read_regular(source).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not YAML: byte {error.start} is not UTF-8"
        raise ConfigurationError(message, where=str(source), hint="Save the file as UTF-8.") from None
    except OSError as error:
        hint = f"A manifest is a file {FILE_NAME}, or a YAML file named in full."
        raise ConfigurationError(f"cannot read the manifest: {error.strerror or error}", where=str(source), hint=hint) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _kind(data: object) -> str:
    return {type(None): "empty", list: "a list", str: "text"}.get(type(data), "a single value")


def _check_keys(document: _Document, data: dict[str, Any], admissible: Sequence[str], prefix: str = "") -> None:
    for key in data:
        if key not in admissible:
            near = difflib.get_close_matches(str(key), admissible, 1, 0.5)
            meant = f"Did you mean `{near[0]}`? " if near else ""
            hint = f"{meant}Keys here: {', '.join(admissible)}."
            raise document.error(f"unknown key `{prefix}{key}`", key=f"{prefix}{key}", hint=hint)


def _read_written(document: _Document) -> _Written:
    data = document.data
    _check_keys(document, data, _Written.__struct_fields__)
    if isinstance(data.get("limits"), dict):
        _check_keys(document, data["limits"], _WrittenLimits.__struct_fields__, "limits.")
    for field in msgspec.structs.fields(_Written):
        if field.required and field.name not in data:
            raise document.error(f"the key `{field.name}` is missing", hint=f"Add `{field.name}:`.")
    _check_texts(document, data, "")  # first: of a lone surrogate msgspec makes an exception of another kind
    try:
        written = msgspec.convert(data, _Written)
    except msgspec.ValidationError as error:
        raise _wrong_value(document, str(error)) from None
    _check_names(document, written)
    return written


def _check_texts(document: _Document, value: object, path: str) -> None:
    """Refuse text that the system takes for nothing: no word, variable or path can hold it."""
    if isinstance(value, str):
        sign = next((sign for sign in value if sign == "\0" or "\ud800" <= sign <= "\udfff"), None)
        if sign is not None:
            raise document.error(f"`{path}`: {value[:80]!a} holds {sign!a}", key=_known_key(document, path), hint=_TEXT)
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_texts(document, key, f"{path}.{ascii(key)[1:-1]}".strip("."))
            _check_texts(document, part, f"{path}.{key}".strip("."))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check_texts(document, part, f"{path}[{index}]")


def _check_names(document: _Document, written: _Written) -> None:
    name = written.name
    if not (name.isprintable() and name.strip() == name and 0 < len(name.encode()) <= _LONGEST_NAME):
        hint = f"A name is 1 to {_LONGEST_NAME} bytes of signs that can be printed, with no space around it."
        raise document.error(f"`name`: {name[:80]!a} is no name", key="name", hint=hint)
    for variable in written.env:
        if not variable or "=" in variable:
            raise document.error(
                f"`env`: {variable!r} is no variable's name", key="env", hint="A name is not empty and has no `=`."
            )


def _wrong_value(document: _Document, message: str) -> ConfigurationError:
    problem, _, path = message.partition(" - at `$")
    key = path.strip(".`")
    value: Any = document.data
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    shown = f", got {value!r:.80}" if value is not None and "got" not in problem else ""
    return document.error(
        f"`{key}`: {problem[:1].lower()}{problem[1:]}{shown}",
        key=_known_key(document, key),
        hint="See docs/protocol.md, `Manifest`.",
    )


def _known_key(document: _Document, path: str) -> str:
    """Give the key, of those whose lines are known, that ``path`` is or is in."""
    return next((key for key in (path, re.split(r"[.\[]", path)[0]) if key in document.lines), "")


def parse_size(value: int | str) -> int:
    """Give the bytes that ``512MiB``, ``2GiB``, ``64KiB`` or a plain integer says.

    Raises ValueError, with the admissible units in its message.
    """
    if isinstance(value, int):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{value[:40]!r} is no size in bytes; write an integer, or one with KiB, MiB or GiB, such as 512MiB")
    return int(match[1]) * _UNITS[match[2]]


def _limits(document: _Document, written: _WrittenLimits) -> SubjectLimits:
    given = {name: value for name in written.__struct_fields__ if (value := getattr(written, name)) is not None}
    for name, value in given.items():
        key = f"limits.{name}"
        try:
            given[name] = parse_size(value) if name in ("memory", "line") else float(value)
        except (ValueError, OverflowError) as error:
            raise document.error(f"`{key}`: {error}", key=key) from None
        if not 0 < given[name] < _LARGEST_LIMIT:
            raise document.error(f"`{key}` is {value}", key=key, hint=f"A limit is a number above 0 and below {_LARGEST_LIMIT:g}.")
    return SubjectLimits(**given)


class _Words:
    """Replaces the placeholders in a manifest's words."""

    def __init__(self, document: _Document, built: Path) -> None:
        self._document = document
        self._known = {
            "python": sys.executable,
            "dir": str(document.source.parent),
            "build": str(built),
            "conformance": str(Path(__file__).parents[1]),
        }

    def fill(self, word: str, key: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._value(match, key), word)

    def _value(self, match: re.Match[str], key: str) -> str:
        if match[1] not in self._known:
            known = ", ".join(f"{{{name}}}" for name in self._known)
            raise self._document.error(f"`{key}`: unknown placeholder `{match[0]}`", key=key, hint=f"Known: {known}.")
        return self._known[match[1]]

    def command(self, words: list[str]) -> tuple[str, ...]:
        if not words or not words[0]:
            raise self._document.error("`command` is empty", key="command", hint='For example: command: ["{dir}/adapter"]')
        first, *rest = (self.fill(word, "command") for word in words)
        if os.sep in first and not Path(first).is_absolute():
            first = str(self._document.source.parent / first)
        return (first, *rest)

    def build(self, commands: Iterable[str | list[str]]) -> tuple[str, ...]:
        lines = (command if isinstance(command, str) else shlex.join(command) for command in commands)
        return tuple(put_in(line, _PLACEHOLDER, lambda match: self._value(match, "build")) for line in lines)


def _built(name: str, folder: Path) -> Path:
    """Give where an adapter's build goes: a folder of the cache, apart for adapters of one name in different places."""
    place = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    return cache_root() / "adapters" / f"{_UNFIT.sub('_', name)}-{place}"


def _divergences(document: _Document, written: str | None) -> Path | None:
    path = document.source.parent / (written or "divergences.yaml")
    if _there(path) and path.is_file():
        return path
    if written is None:
        return None
    hint = "Make the file, or leave the key out: `divergences.yaml` beside the manifest is found without it."
    raise document.error(f"`divergences`: no file {str(path)[:400]}", key="divergences", hint=hint)


def load_manifest(path: Path | str, *, check_command: bool = True) -> Manifest:
    """Read a manifest; ``path`` is the file or the folder that holds ``adapter.yaml``.

    Raises ConfigurationError with file and line where the file is no manifest and, with ``check_command``, where what it
    starts does not exist.
    """
    source = _at_home(Path(path)).absolute()
    document = _Document(source / FILE_NAME if source.is_dir() else source)
    written = _read_written(document)
    built = _built(written.name, document.source.parent)
    words = _Words(document, built)
    manifest = Manifest(
        name=written.name,
        language=written.language,
        command=words.command(written.command),
        build=words.build(written.build or ()),
        needs=tuple(written.needs),
        limits=_limits(document, written.limits),
        profile=written.profile,
        env={name: words.fill(value, "env") for name, value in written.env.items()},
        divergences=_divergences(document, written.divergences),
        one_shot=written.one_shot,
        folder=document.source.parent,
        source=document.source,
        built=built,
    )
    if check_command:
        require_command(manifest)
    return manifest


def _at_home(path: Path) -> Path:
    """Give a path with ``~`` replaced; that of a user who has no home, or is none, as it is."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def require_command(manifest: Manifest) -> None:
    """Check that the command, and each file of its own folders that it names, exists.

    Raises ConfigurationError that says which is missing and how to build it.
    """
    hint = f"Build it first: {manifest.build_hint}" if manifest.build else "Install it, or mend `command` in the manifest."
    program = manifest.command[0]
    if shutil.which(program, path=manifest.environment.get("PATH")) is None:
        raise ConfigurationError(f"subject {manifest.name}: {_why_not(program)}", where=str(manifest.source), hint=hint)
    for word in manifest.command[1:]:
        if word.startswith((f"{manifest.folder}{os.sep}", f"{manifest.built}{os.sep}")) and not _there(Path(word)):
            raise ConfigurationError(f"subject {manifest.name}: {word} does not exist", where=str(manifest.source), hint=hint)


def _why_not(program: str) -> str:
    if os.sep not in program:
        return f"the command `{program}` is not on PATH"
    return f"{program} is not an executable file" if _there(Path(program)) else f"{program[:400]} does not exist"


def _there(path: Path) -> bool:
    """Say whether something stands there; a name that no file system takes (too long) is not there."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def known_names() -> dict[str, Path]:
    """Give the manifests that go by a name: one a folder of ``adapters/``, and the authorities."""
    found = {path.parent.name: path for path in sorted(adapters_root().glob(f"*/{FILE_NAME}"))}
    authorities = {path.stem: path for path in sorted(AUTHORITIES_FOLDER.glob("*.yaml"))}
    return {**found, **authorities}


def find_manifest(name_or_path: Path | str, *, check_command: bool = True) -> Manifest:
    """Load a subject's manifest by its name, or by the path of its folder or file (``.yaml`` may be left out).

    Raises ConfigurationError, and UsageError for an unknown name, which lists the known ones.
    """
    text = str(name_or_path)
    names = known_names()
    if text in names:
        return load_manifest(names[text], check_command=check_command)
    path = _at_home(Path(text))
    for candidate in (path, path.with_name(f"{path.name}.yaml")) if path.name else (path,):
        if candidate.exists():
            return load_manifest(candidate, check_command=check_command)
    near = difflib.get_close_matches(text, names, 1, 0.5)
    meant = f"Did you mean {near[0]}? " if near else ""
    hint = f"{meant}Known subjects: {', '.join(names) or 'none'}. A path to a folder with {FILE_NAME} also serves."
    raise UsageError(f"no subject {text!r}: neither a known name nor a path that exists", hint=hint)
