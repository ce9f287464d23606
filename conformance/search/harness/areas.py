"""The areas of the search: what is drawn, what must hold of it, and how a finding is repeated by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis.strategies import SearchStrategy

from conformance.search.harness import case_files, command_lines, event_streams, golden, known, manifests, protocol_lines
from conformance.search.harness.oracles import case_files as case_files_hold
from conformance.search.harness.oracles import command_lines as command_lines_hold
from conformance.search.harness.oracles import event_streams as event_streams_hold
from conformance.search.harness.oracles import golden as golden_holds
from conformance.search.harness.oracles import known as known_holds
from conformance.search.harness.oracles import manifests as manifests_hold
from conformance.search.harness.oracles import protocol_lines as protocol_lines_hold
from conformance.search.harness.oracles import subject_runs as subject_runs_hold


class Area(NamedTuple):
    """One area: ``documents`` gives the strategy, ``check(document, folder)`` raises BrokenRule, ``show`` gives a document's bytes.

    ``share`` of the time, and of the examples, goes to it.
    """

    name: str
    documents: Callable[[], SearchStrategy[Any]]
    check: Callable[[Any, Path], None]
    repeat: str
    suffix: str
    share: float = 1.0
    show: Callable[[Any], bytes] = bytes


def _said(said: protocol_lines_hold.Said) -> bytes:
    return said.line.replace(b"@", b"%d" % (said.request + 1))


def _script(script: subject_runs_hold.Script) -> bytes:
    return json.dumps(
        {"lines": [line.hex() for line in script.lines], "one_shot": script.one_shot, "validate": script.validate}
    ).encode()


def _words(typed: command_lines_hold.Typed) -> bytes:
    line = shlex.join(("gguf-conformance", *typed.words))
    return f"PYTHONIOENCODING={typed.encoding} {line}\n".encode("utf-8", "surrogateescape")


_SCRIPT = "write `lines` into script.json; command of a manifest: python -m conformance.search.harness.scripted script.json"
_GOLDEN = "put it at cases/golden/own/small.json; gguf-conformance run --oracle golden --cases cases"
_CASES = "put it at cases/own/files.yaml; gguf-conformance list --cases cases"
_KNOWN = "put it beside a manifest as divergences.yaml; gguf-conformance run"

AREAS = (
    Area("case-files", case_files.documents, case_files_hold.check, _CASES, ".yaml"),
    Area("manifests", manifests.documents, manifests_hold.check, "gguf-conformance run --oracle golden -S FILE", ".yaml"),
    Area("known", known.documents, known_holds.check, _KNOWN, ".yaml"),
    Area("golden", golden.documents, golden_holds.check, _GOLDEN, ".json"),
    Area("event-streams", event_streams.documents, event_streams_hold.check, "gguf-conformance report FILE", ".ndjson"),
    Area("protocol-lines", protocol_lines.documents, protocol_lines_hold.check, "let a subject answer so", ".json", show=_said),
    Area("subject-runs", protocol_lines.scripts, subject_runs_hold.check, _SCRIPT, ".json", 0.2, _script),
    Area(
        "command-lines",
        command_lines.documents,
        command_lines_hold.check,
        "run it in a folder with what it names",
        ".sh",
        show=_words,
    ),
)
