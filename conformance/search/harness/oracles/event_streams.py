"""Whatever stands in an event stream: a report that says what it says, and of one that is not whole that it is not."""

from __future__ import annotations

from pathlib import Path

import msgspec

from conformance.report.events import Event
from conformance.search.harness.broken import require
from conformance.search.harness.invoke import invoke
from conformance.search.harness.oracles.streams import contradiction

_DECODER = msgspec.json.Decoder(Event)


def check(document: bytes, folder: Path) -> None:
    """Make the report of a stream twice, and hold its exit code against what the stream holds."""
    path = folder / "events.ndjson"
    path.write_bytes(document)
    ended = invoke("report", str(path), "--to", str(folder / "out"))
    wrong, code = _wrong(document)
    if wrong:
        require(ended.code != 0, f"exit code 0 of a stream that is not whole: {wrong}")
        told = ended.err.strip() or "!! " in ended.out
        require(told, f"a stream that is not whole is not told as such: {wrong}")
    else:
        require(ended.code == code, f"the stream says exit code {code}, its report gives {ended.code}: {ended.err.strip()[:200]}")
        require("!! " not in ended.out, "a whole stream is said not to be one")
    again = invoke("report", str(path), "--to", str(folder / "out"))
    require(again == ended, "the same stream, another report")
    require(invoke("report", str(path), "--by-type", encoding="latin-1").code == ended.code, "another exit code with --by-type")


def _wrong(document: bytes) -> tuple[str, int]:
    """Say why the stream is not whole, empty where it is, and the exit code that it states."""
    *lines, rest = document.split(b"\n")
    try:
        decoded = [_DECODER.decode(line) for line in lines]
    except (msgspec.DecodeError, RecursionError):
        return "a line is no event", 3
    if rest:
        return "its last line is cut", 3
    events = [msgspec.to_builtins(event) for event in decoded]
    return contradiction(events), events[-1].get("exit_code", 3) if events else 3
