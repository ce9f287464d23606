"""Builds an adapter as its manifest says, into a folder of the cache, and only where something has changed."""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path

from conformance.errors import ConfigurationError, UsageError
from conformance.logged import Say, last_lines, run_logged
from conformance.subjects.manifest import Manifest, require_command

LOG = "build.log"
# Says of what the folder was built.
STAMP = ".built-of"
# What a build does not take in.
_ASIDE = frozenset({"divergences.yaml", "README.md", "__pycache__"})


def build(manifest: Manifest, say: Say, *, again: bool = False) -> float | None:
    """Run the manifest's build commands and give the seconds that they took; None where there is nothing to do.

    There is nothing to do where the commands and the files of the adapter's folder are those of the last build, unless ``again``.
    Raises ConfigurationError where a program that they need is missing, a command fails (with the end of its log), or what the
    manifest starts is not there afterwards; UsageError for a manifest without build commands.
    """
    if not manifest.build:
        raise UsageError(f"{manifest.name} has no build commands", hint=f"add `build` to {manifest.source} (docs/protocol.md)")
    stamp, sources = manifest.built / STAMP, _digest(manifest)
    if not again and stamp.is_file() and stamp.read_text(encoding="utf-8") == sources:
        return None
    if missing := missing_tools(manifest):
        raise ConfigurationError(
            f"{manifest.name} cannot be built: {', '.join(missing)} not on PATH", where=str(manifest.source), hint="install it"
        )
    stamp.unlink(missing_ok=True)
    started = time.monotonic()
    _run_all(manifest, say)
    require_command(manifest)
    stamp.write_text(sources, encoding="utf-8")
    return time.monotonic() - started


def missing_tools(manifest: Manifest) -> list[str]:
    """Give the programs in the manifest's ``needs`` that are not on PATH."""
    return [tool for tool in manifest.needs if shutil.which(tool) is None]


def _run_all(manifest: Manifest, say: Say) -> None:
    manifest.built.mkdir(parents=True, exist_ok=True)
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
    return next((line.strip()[:100] for line in reversed(lines) if line.strip()), "")


def _digest(manifest: Manifest) -> str:
    """Give a digest of the build commands and of each file that they may take in."""
    digest = hashlib.sha256("\n".join(manifest.build).encode())
    for path in sorted(_sources(manifest.folder)):
        content = path.read_bytes()
        digest.update(f"\n{path.relative_to(manifest.folder)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _sources(folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if not _ASIDE.intersection(path.relative_to(folder).parts)]
