"""``new-adapter``: a folder with an adapter that builds and keeps the protocol, for the author's library to be put in."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from conformance.cases.model import AUTHORITIES
from conformance.errors import EXIT_OK, ConfigurationError, UsageError
from conformance.subjects.manifest import load_manifest

TEMPLATES = Path(__file__).parent / "templates"
# What a template has in the place of the adapter's name. A name stands within texts of every language: it needs no escapes.
NAME = b"@NAME@"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def languages() -> list[str]:
    """Give the languages that there are templates for."""
    return sorted(path.parent.name for path in TEMPLATES.glob("*/adapter.yaml"))


def new_adapter_command(language: str, folder: Path, name: str | None) -> int:
    """Write the adapter and print what to do next. Raises as ``write_adapter``."""
    files = write_adapter(language, folder, name if name is not None else _name_of(folder))
    click.echo(f"wrote {folder}: {', '.join(files)}")
    for line in _next_steps(folder):
        click.echo(line)
    return EXIT_OK


def _name_of(folder: Path) -> str:
    """Give a folder's own name, whatever leads to it; of links that lead in a circle the last one's."""
    try:
        return folder.resolve().name
    except (OSError, RuntimeError):
        return folder.name


def write_adapter(language: str, folder: Path, name: str) -> list[str]:
    """Write the template of ``language`` into ``folder``, which is made if need be, and give the files' names.

    Raises UsageError for a language without a template, a name that does not fit and a folder that holds something already,
    ConfigurationError where it cannot be written.
    """
    _require_language(language)
    _require_name(name)
    source = TEMPLATES / language
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is there already, and not an empty folder", hint="name a folder that is not there yet")
        for file in files:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((source / file).read_bytes().replace(NAME, name.encode()))
    except OSError as problem:
        raise ConfigurationError(f"cannot write the adapter: {problem.strerror or problem}", where=str(folder)) from problem
    return [file.as_posix() for file in files]


def _require_language(language: str) -> None:
    known = languages()
    if language not in known:
        near = difflib.get_close_matches(language, known, 1)
        meant = f"did you mean `{near[0]}`? " if near else ""
        raise UsageError(
            f"no template in {language!a}",
            hint=f"{meant}there are: {', '.join(known)}; in any other language an adapter is the same loop: docs/protocol.md",
        )


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!a} cannot be an adapter's name",
            hint="give one: --name, 1 to 64 letters, digits, and . _ + - after the first",
        )
    if name in AUTHORITIES:
        raise UsageError(f"`{name}` is an authority's name", hint="give another one: --name")


def _next_steps(folder: Path) -> Iterator[str]:
    """Give the commands that lead on, as a shell takes them."""
    manifest = load_manifest(folder, check_command=False)
    # Without a slash it would be looked for among the known names.
    place = shlex.quote(str(folder) if "/" in str(folder) else f"./{folder}")
    yield "next:"
    if manifest.build:
        yield f"  gguf-conformance build {place}"
    yield f"  gguf-conformance run --subject {place} --select 'protocol/**' --validate"
    yield f"then put your library into the part of the source that says so ({place}/README.md), and:"
    yield f"  gguf-conformance run --subject {place}"
    yield "the whole way, with known divergences and CI: docs/new-adapter.md; the protocol: docs/protocol.md"
