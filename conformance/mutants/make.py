"""Makes a mutant: a copy of the package ``impl`` with the fault in it, and a manifest that starts this copy.

The loops that numba has kept on disk come along as hard links: it never writes into such a file, it puts a new one in its place.
They count for a module as it was, by its content or, to older versions of numba, by its time and size. Copies keep both, so that
only the loops of a changed module, and those that call them, are compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import impl
from conformance.errors import ConfigurationError
from conformance.mutants.catalogue import Edit, Mutant
from conformance.places import cache_root

SOURCE = Path(impl.__file__).parent
LAUNCHER = "run.py"
# Seconds after which a mutant of another state of the reference is thrown away.
_OLD = 86_400

# The folder of the script is not on the path where PYTHONSAFEPATH is set, and the harness's packages are before all others.
_LAUNCHER_TEXT = '''"""Runs the `impl` that lies beside this file."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
runpy.run_module("impl", run_name="__main__", alter_sys=True)
'''


def make(mutant: Mutant, source: Path = SOURCE) -> Path:
    """Give the folder of a mutant, with its ``adapter.yaml``; it is made if it is not in the cache.

    Raises ConfigurationError where an edit does not apply, or where the cache cannot be written.
    """
    changed = apply(mutant, source)
    folder = cache_root() / "mutants" / f"{mutant.name}-{_key(mutant, source)}"
    if not folder.is_dir():
        with _writing(folder):
            _build(mutant, source, changed, folder)
    return folder


def apply(mutant: Mutant, source: Path = SOURCE) -> dict[str, str]:
    """Give the text of each file that the mutant changes. Raises ConfigurationError where an edit does not apply."""
    texts: dict[str, str] = {}
    for edit in mutant.edits:
        texts[edit.file] = _edited(mutant, edit, texts.get(edit.file), source)
    return texts


def _edited(mutant: Mutant, edit: Edit, text: str | None, source: Path) -> str:
    path = source / edit.file
    if text is None:
        try:
            text = path.read_text("utf-8")
        except OSError as problem:
            raise _stale(mutant, f"there is no file impl/{edit.file} ({problem.strerror})", path) from None
    count = text.count(edit.replace)
    if count != 1:
        first = edit.replace.strip().partition("\n")[0]
        raise _stale(mutant, f"the text that it replaces stands {count} times in impl/{edit.file}, not once: {first!r}", path)
    return text.replace(edit.replace, edit.by)


def _stale(mutant: Mutant, problem: str, path: Path) -> ConfigurationError:
    hint = f"the reference has changed: put the fault anew into conformance/mutants/catalogue/{mutant.group}.yaml"
    return ConfigurationError(f"the mutant {mutant.name} no longer applies: {problem}", where=str(path), hint=hint)


def _key(mutant: Mutant, source: Path) -> str:
    """Digest the reference, the edits and how both are started."""
    digest = hashlib.sha256(json.dumps([mutant.edits, mutant.time, _LAUNCHER_TEXT]).encode())
    for path in _files(source, ".py"):
        digest.update(path.relative_to(source).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _files(source: Path, *suffixes: str) -> Iterator[Path]:
    return (path for path in sorted(source.rglob("*")) if path.suffix in suffixes)


def _build(mutant: Mutant, source: Path, changed: dict[str, str], folder: Path) -> None:
    """Build it beside its place and move it there whole: whoever comes at the same time finds nothing or all of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _throw_away_old(folder.parent)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        _copy(source, scratch / "impl")
        for file, text in changed.items():
            (scratch / "impl" / file).write_text(text, "utf-8")
        (scratch / LAUNCHER).write_text(_LAUNCHER_TEXT, "utf-8")
        (scratch / "adapter.yaml").write_text(_manifest(mutant), "utf-8")
        with contextlib.suppress(FileExistsError):
            scratch.rename(folder)
    except OSError:
        if not folder.is_dir():  # a folder that is not empty stands in the way of another by ENOTEMPTY
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    for path in _files(source, ".py", ".nbi", ".nbc"):
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".py":
            try:
                os.link(path, to)
                continue
            except OSError:
                pass  # another file system
        with contextlib.suppress(FileNotFoundError):  # what numba puts in another's place is away for a moment
            shutil.copy2(path, to)


def _manifest(mutant: Mutant) -> str:
    """Give the text of ``adapter.yaml``. JSON is YAML."""
    said = {
        "name": mutant.name,
        "language": "python",
        "command": ["{python}", f"{{dir}}/{LAUNCHER}"],
        "limits": {"time": mutant.time, "memory": "2GiB"},
    }
    return f"# The reference with a fault: {mutant.fault}\n{json.dumps(said)}\n"


def _throw_away_old(root: Path) -> None:
    until = time.time() - _OLD
    for folder in root.iterdir():
        if folder.stat().st_mtime < until:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        hint = "name another cache: GGUF_CONFORMANCE_CACHE=FOLDER"
        raise ConfigurationError(f"cannot make the mutant: {problem.strerror or problem}", where=str(folder), hint=hint) from None
