"""Whatever a real process says: a whole run through pipes, engine, events and reports, and a report that says the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

from conformance.search.harness import scripted
from conformance.search.harness.broken import require
from conformance.search.harness.invoke import invoke
from conformance.search.harness.oracles.streams import require_reports, require_sound_run

CASES = """\
suite: own/two
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  a: {build: {kv: [{key: a, u32: 7}]}}
  b: {build: {}, ask: [load]}
"""
IDS = ["own/two/a", "own/two/b"]
_SECONDS = 0.4


class Script(NamedTuple):
    """What a subject prints: ``lines`` (of scripted.py), used once for each request or not, checked by the schema or not."""

    lines: tuple[bytes, ...]
    one_shot: bool = False
    validate: bool = False


def check(script: Script, folder: Path) -> None:
    """Run two cases on a process that keeps to the script."""
    root, out = folder / "cases", folder / "out"
    (root / "own").mkdir(parents=True)
    (root / "own" / "two.yaml").write_text(CASES, encoding="utf-8")
    (folder / "adapter.yaml").write_text(_manifest(script), encoding="utf-8")
    (folder / "script.json").write_text(json.dumps([line.hex() for line in script.lines]), encoding="ascii")
    words = [
        "run",
        "-S",
        str(folder),
        "--cases",
        str(root),
        "--oracle",
        "golden",
        "--profile",
        "spec",
        "-j",
        "1",
        "--report",
        str(out),
    ]
    ended = invoke(*words, *(["--validate"] if script.validate else []))
    stream = out / "events.ndjson"
    if not stream.exists() or not stream.read_bytes():
        require(ended.code in {2, 3}, f"no event, and exit code {ended.code}")
        require(ended.err.strip(), "no event, and nothing on stderr")
        return
    require_sound_run(stream.read_bytes(), ended.code, IDS, ["scripted"])
    again = require_reports(stream, ended.code)
    require(_shown(again.out) == _shown(ended.out), "the report made again says another thing than the run")


def _manifest(script: Script) -> str:
    command = [sys.executable, "-I", "-S", scripted.__file__, "{dir}/script.json"]
    return (
        f"name: scripted\nlanguage: python\ncommand: {json.dumps(command)}\none_shot: {json.dumps(script.one_shot)}\n"
        f"limits: {{time: {_SECONDS}, hello: 5, line: 64KiB}}\n"
    )


def _shown(text: str) -> list[str]:
    """Give what was printed, but for where the reports are."""
    return [line for line in text.splitlines() if "/" not in line]
