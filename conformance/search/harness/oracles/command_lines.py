"""Whatever words the command is given: a documented exit code, and of wrong usage an error that says so."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from conformance.search.harness import small
from conformance.search.harness.broken import require
from conformance.search.harness.invoke import invoke
from conformance.search.harness.oracles.manifests import HARMLESS
from conformance.search.harness.stub import run_small, sound, write_golden

# What the words may name, in the folder where the command is run.
FILES = ("cases", "adapter", "events.ndjson", "file.gguf", "pipe", "empty", "text.txt", "loop")


class Typed(NamedTuple):
    """The words after the program's name, and the locale's encoding."""

    words: tuple[str, ...]
    encoding: str


def check(typed: Typed, folder: Path) -> None:
    """Run the words in a folder that has some of what they name."""
    _furnish(folder)
    with contextlib.chdir(folder):
        ended = invoke(*typed.words, encoding=typed.encoding)
    refused = ended.code in {2, 3, 4}
    require(not refused or ended.err.strip() or ended.out.strip(), f"exit code {ended.code}, and not a word")


def _furnish(folder: Path) -> None:
    root = small.write_cases(folder / "cases")
    golden = write_golden(root)
    (folder / "adapter").mkdir()
    command = ", ".join(f'"{word}"' for word in HARMLESS)
    (folder / "adapter" / "adapter.yaml").write_text(f"name: x\nlanguage: x\ncommand: [{command}]\n", encoding="utf-8")
    run_small(golden, folder, sound)
    (folder / "file.gguf").write_bytes(b"GGUF" + (3).to_bytes(4, "little") + bytes(16))
    (folder / "empty").write_bytes(b"")
    (folder / "text.txt").write_text("no events", encoding="utf-8")
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
