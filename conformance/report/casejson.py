"""The report on one case as JSON, for programs. Every key is always there; what is not known is null, empty or 0.

Keys of ``cases/<id>.json`` (format 1):

- ``format``, ``case``, ``suite``; ``warning``: why the run is not whole, empty for a whole one
- ``run``: ``version``, ``started``, ``command``, ``oracle``, ``profile``, ``participants`` (each ``name``, ``version``,
  ``language``, ``role``, ``details``, ``limits``)
- ``source``, ``recipe``, ``spec``, ``note``, ``covers``; ``expected``: authority to what the case declares of it
- ``input_hexdump``: lines of ``offset``, ``data`` (hex), ``field``, ``mark``, ``elided``
- ``results``: ``who``, ``role``, ``verdict``, ``profile``, ``reason``, ``known``, ``counts``, ``seconds``, ``repeat``,
  ``agreement`` (authority to ``same`` and ``different``, numbers of steps), ``divergences``, whose keys are the fields of
  ``conformance.judge.divergence.Divergence``, and ``answers``: ``who``, ``op``, ``outcome``, ``message``, ``value``, ``at``,
  ``field``, ``same`` (of its own answer, whether it equals the judging authority's; of an authority's, whether its own
  equals that), ``seconds``, ``stderr``

Strings are as they came; the JSON itself is ASCII, so that no string in it can do anything to a terminal.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from conformance.report.case_results import CaseResults
from conformance.report.events import CaseResult, RunStarted
from conformance.report.summary import suite_of

FORMAT = 1
_RESULT = (
    "who",
    "role",
    "verdict",
    "profile",
    "reason",
    "known",
    "counts",
    "seconds",
    "repeat",
    "agreement",
    "divergences",
    "answers",
)


def case_json(case: CaseResults, started: RunStarted, warning: str) -> str:
    """Give the report on one case as indented JSON text, with the keys that the module's docstring lists."""
    report = {
        "format": FORMAT,
        "case": case.id,
        "suite": suite_of(case.id),
        "warning": warning,
        "run": _run(started),
        "source": case.source,
        "recipe": case.recipe,
        "spec": case.spec,
        "note": case.note,
        "covers": list(case.covers),
        "expected": case.expected,
        "input_hexdump": _plain(case.input_hexdump),
        "results": [_result(result) for result in case.results],
    }
    return json.dumps(report, indent=2) + "\n"


def _run(started: RunStarted) -> dict[str, Any]:
    fields = ("version", "started", "command", "oracle", "profile", "participants")
    return {name: _plain(getattr(started, name)) for name in fields}


def _result(result: CaseResult) -> dict[str, Any]:
    return {name: _plain(getattr(result, name)) for name in _RESULT}


def _plain(value: Any) -> Any:
    """Turn structs into mappings of all their fields, defaults included, which msgspec's own encoding leaves out."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
