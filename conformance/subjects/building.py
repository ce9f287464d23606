"""Builds an adapter as its manifest says, into a folder of the cache, and only where something has changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import ConfigurationError, UsageError
from conformance.logged import Say, last_lines, run_logged
from conformance.places import adapters_root
from conformance.printable import one_line
from conformance.subjects.manifest import Manifest, require_command

LOG = "build.log"
# Says of what the folder was built.
STAMP = ".built-of"
# What a build does not take in.
_ASIDE = frozenset({"divergences.yaml", "README.md", "__pycache__"})
_SHOWN = 100


def build(manifest: Manifest, say: Say, *, again: bool = False) -> float | None:
    """Run the manifest's build commands and give the seconds that they took; None where there is nothing to do.

    There is nothing to do where the commands and the files of the adapter's folder are those of the last build, and what it made
    is there, unless ``again``. Of several processes that build one adapter, one does, and the others wait for it.
    Raises ConfigurationError where a program that they need is missing, a command fails (with the end of its log), what the
    manifest starts is not there afterwards, or the cache cannot be used; UsageError for a manifest without build commands.
    """
    if not manifest.build:
        raise UsageError(f"{manifest.name} has no build commands", hint=f"add `build` to {manifest.source} (docs/protocol.md)")
    try:
        with _alone(manifest, say):
            return _build(manifest, say, again=again)
    except OSError as problem:
        raise ConfigurationError(
            f"{manifest.name} cannot be built: {problem.strerror or problem}",
            where=str(problem.filename or manifest.built),
            hint="make room or give access, or set GGUF_CONFORMANCE_CACHE to another folder",
        ) from problem


@contextmanager
def _alone(manifest: Manifest, say: Say) -> Iterator[None]:
    """Hold the lock of the adapter's build; the system frees it when its holder ends, however it ends."""
    manifest.built.mkdir(parents=True, exist_ok=True)
    with manifest.built.with_name(f"{manifest.built.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that builds {manifest.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(manifest: Manifest, say: Say, *, again: bool) -> float | None:
    stamp, sources = manifest.built / STAMP, _digest(manifest)
    if not again and _is_there(manifest) and stamp.is_file() and stamp.read_bytes() == sources:
        return None
    if missing := missing_tools(manifest):
        raise ConfigurationError(
            f"{manifest.name} cannot be built: {', '.join(missing)} not on PATH", where=str(manifest.source), hint="install it"
        )
    stamp.unlink(missing_ok=True)
    started = time.monotonic()
    _run_all(manifest, say)
    require_command(manifest)
    stamp.write_bytes(sources)
    return time.monotonic() - started


def outdated(manifest: Manifest) -> bool:
    """Tell whether the adapter's folder or commands are others than those that were built; False where nothing was built here.

    What an adapter takes in from elsewhere, such as a library beside its folder, does not show.
    """
    stamp = manifest.built / STAMP
    try:
        return bool(manifest.build) and stamp.is_file() and stamp.read_bytes() != _digest(manifest)
    except OSError:  # a view of the build is no part of a run
        return False


def self_contained(manifest: Manifest) -> bool:
    """Tell whether an adapter is one of the project's own: pinned, and all that it is built of stands in its folder."""
    return manifest.folder.resolve().is_relative_to(adapters_root().resolve())


def _is_there(manifest: Manifest) -> bool:
    """Tell whether what the manifest starts exists: a cache is there to be deleted from."""
    try:
        require_command(manifest)
    except ConfigurationError:
        return False
    return True


def missing_tools(manifest: Manifest) -> list[str]:
    """Give the programs in the manifest's ``needs`` that are not on PATH."""
    return [tool for tool in manifest.needs if shutil.which(tool) is None]


def _run_all(manifest: Manifest, say: Say) -> None:
    log = manifest.built / LOG
    log.unlink(missing_ok=True)
    for command in manifest.build:
        status = run_logged(["sh", "-c", command], log, say, step=_last_line, env=manifest.environment, folder=manifest.folder)
        if status != 0:
            raise ConfigurationError(
                f"building {manifest.name} failed (exit {status}): {command}", where=str(log), hint=last_lines(log)
            )


def _last_line(end: bytes) -> str:
    lines = end.decode("utf-8", "replace").split("\n")
    return next((one_line(line.strip(), _SHOWN) for line in reversed(lines) if line.strip()), "")


def _digest(manifest: Manifest) -> bytes:
    """Give a digest of the build commands and of each file that they may take in."""
    digest = hashlib.sha256("\n".join(manifest.build).encode())
    for path in sorted(_sources(manifest.folder)):
        content = path.read_bytes()
        digest.update(b"\n%b %d\n" % (os.fsencode(path.relative_to(manifest.folder)), len(content)))
        digest.update(content)
    return digest.hexdigest().encode()


def _sources(folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if not _ASIDE.intersection(path.relative_to(folder).parts)]
