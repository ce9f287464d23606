"""Whatever stands in a manifest: a manifest that a process can be started by, or a refusal that names the file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conformance.errors import GgufConformanceError
from conformance.search.harness.broken import BrokenRule, require
from conformance.search.harness.invoke import invoke
from conformance.search.harness.oracles.refusals import no_traceback, require_refusal
from conformance.search.harness.small import write_cases
from conformance.subjects.manifest import FILE_NAME, Manifest, load_manifest, require_command

# A command that ends at once: what a manifest may say besides can be tried with it, and nothing else is ever started.
HARMLESS = ("{python}", "-I", "-S", "-c", "")


def check(document: bytes, folder: Path) -> None:
    """Load the manifest, see that a process could be started by it, and start it where its command is the harmless one."""
    path = folder / FILE_NAME
    path.write_bytes(document)
    try:
        with no_traceback("loading the manifest"):
            manifest = load_manifest(folder, check_command=False)
    except GgufConformanceError as problem:
        require_refusal(problem, 3, path)
        return
    _require_startable(manifest)
    try:
        with no_traceback("looking for the command"):
            require_command(manifest)
    except GgufConformanceError as problem:
        require_refusal(problem, 3, path)
        return
    if manifest.command[: len(HARMLESS)] == (sys.executable, *HARMLESS[1:]) and not manifest.one_shot:
        _require_told(folder)


def _require_startable(manifest: Manifest) -> None:
    """Hold the parts to what the system takes: words, variables and limits."""
    with no_traceback("making the environment"):
        words = [*manifest.command, *(f"{name}={value}" for name, value in manifest.environment.items()), manifest.build_hint]
    for word in words:
        try:
            encoded = os.fsencode(word)
        except UnicodeEncodeError as problem:
            raise BrokenRule(f"{word[:60]!a} is no word that a process can be given") from problem
        require(b"\0" not in encoded, f"{word[:60]!a} holds NUL")
    limits = manifest.limits
    require(all(0 < limit < 1e18 for limit in (limits.time, limits.memory, limits.line, limits.hello)), f"limits {limits}")


def _require_told(folder: Path) -> None:
    """Run a subject that ends before its hello: exit code 3 and its name, whatever the manifest says."""
    root = write_cases(folder / "cases")
    ended = invoke("run", "-S", str(folder), "--cases", str(root), "--oracle", "golden", "--profile", "spec", "--no-report")
    require(ended.code in {2, 3}, f"a subject that ends at once: exit code {ended.code}")
