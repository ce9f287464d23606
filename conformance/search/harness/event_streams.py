"""Event streams: those of small runs, whole, cut, with lines lost or doubled, sums that do not add up, fields made wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import strategies as st

from conformance.report.events import Event, KnownProblem, RunFinished, RunStarted
from conformance.search.harness import trees
from conformance.search.harness.odd import JSON_RAW, edited, mangled, retouched, written
from conformance.search.harness.oracles.known import wrong
from conformance.search.harness.stub import Edit, run_small, sound, write_golden

_KEYS = (
    "event", "case", "who", "verdict", "counts", "verdicts", "exit_code", "ended_early", "cases", "format", "participants",
    "divergences", "answers", "by_op", "agreement", "blocks", "files", "small", "pass", "diverge", "stale", "role", "signature",
    "op", "at", "hexdump", "elements", "bits",
)  # fmt: skip
_VERDICTS = ("pass", "diverge", "known", "stale", "skip", "authority-drift", "authority-crash", "error")


def documents() -> st.SearchStrategy[bytes]:
    """Give streams as bytes."""
    stream = st.sampled_from(_real())
    return st.one_of(
        stream,
        stream.flatmap(_one_line_edited),
        stream.flatmap(_closing_edited),
        stream.flatmap(_line_retouched),
        stream.flatmap(mangled),
        stream.flatmap(lambda data: st.lists(st.sampled_from(data.splitlines(keepends=True)), max_size=8).map(b"".join)),
    )


@cache
def _real() -> list[bytes]:
    """Record runs of the small cases: one as expected, one with faults; times are set, so that a seed gives the same streams."""
    return [_recorded(sound), _recorded(wrong)]


def _recorded(edit: Edit) -> bytes:
    with TemporaryDirectory() as name:
        folder = Path(name)
        stream = run_small(write_golden(folder), folder, edit).stream
    decoder = msgspec.json.Decoder(Event)
    events = [_timeless(decoder.decode(line)) for line in stream.splitlines()]
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


def _timeless(event: Event) -> Event:
    match event:
        case RunStarted():
            return msgspec.structs.replace(event, started="2026-01-01T00:00:00+00:00")
        case RunFinished():
            return msgspec.structs.replace(event, seconds=1.0)
        case KnownProblem():
            return event
    return msgspec.structs.replace(
        event, seconds=0.5, answers=tuple(msgspec.structs.replace(one, seconds=0.5) for one in event.answers)
    )


@st.composite
def _one_line_edited(draw: Any, data: bytes) -> bytes:
    lines = data.splitlines()
    index = draw(st.integers(0, len(lines) - 1))
    tree = draw(edited(trees.of_value(json.loads(lines[index])), JSON_RAW, _KEYS))
    lines[index] = trees.emit(tree).encode("utf-8", "surrogatepass")
    return _joined(lines)


@st.composite
def _line_retouched(draw: Any, data: bytes) -> bytes:
    lines = data.splitlines()
    index = draw(st.integers(0, len(lines) - 1))
    lines[index] = draw(written(retouched(trees.of_value(json.loads(lines[index])))))
    return _joined(lines)


@st.composite
def _closing_edited(draw: Any, data: bytes) -> bytes:
    """Change one number or verdict of a result or of the end, so that the stream stays well-formed."""
    events = [json.loads(line) for line in data.splitlines()]
    changes = st.sampled_from(
        ["exit_code", "ended_early", "verdicts", "counts", "verdict", "count", "who", "case", "cases", "problem"]
    )
    for change in draw(st.lists(changes, min_size=1, max_size=2)):
        _change(events, change, draw)
    return _joined([json.dumps(event).encode() for event in events])


def _change(events: list[dict[str, Any]], change: str, draw: Any) -> None:
    start, end = events[0], events[-1]
    result = draw(st.sampled_from([event for event in events if event["event"] == "result"]))
    number = draw(st.one_of(st.integers(-1, 6), st.sampled_from([256, 2**31, 2**70])))
    match change:
        case "exit_code" | "ended_early":
            end[change] = (
                draw(st.sampled_from([0, 1, 2, 3, 4, 130, 256, -1, 2**40]))
                if change == "exit_code"
                else draw(st.sampled_from(["", "interrupted", "\x1b[2J"]))
            )
        case "verdicts":
            end["verdicts"].setdefault(draw(st.sampled_from(["small", "other"])), {})[draw(st.sampled_from(_VERDICTS))] = number
        case "counts":
            end["counts"].setdefault(draw(st.sampled_from(["small", "other"])), {})["blocks"] = number
        case "verdict":
            result["verdict"] = draw(st.sampled_from(_VERDICTS))
        case "count":
            result["counts"] = {"requests": number}
        case "who" | "case":
            result[change] = draw(st.sampled_from(["other", "", "own/small/bad", "a\0b", "../x"]))
        case "cases":
            start["cases"] = number
        case _:
            kind = draw(st.sampled_from(["stale", "unmatched", "unexplained"]))
            events.insert(
                -1,
                {
                    "event": "known-problem",
                    "subject": "small",
                    "kind": kind,
                    "pattern": "",
                    "signature": "",
                    "file": "",
                    "edit": "\0",
                },
            )


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
