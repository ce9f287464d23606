"""What an event stream owes to the run that wrote it, counted here on its own: the code that counts is what is searched."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.report.events import FAILING
from conformance.search.harness.broken import require
from conformance.search.harness.invoke import DOCUMENTED, Ended, invoke
from conformance.search.harness.oracles.refusals import no_traceback

Event = dict[str, Any]


def contradiction(events: Sequence[Event]) -> str:
    """Say why a stream, of well-formed events, is not that of a whole run; empty where it is."""
    if not events or events[0]["event"] != "run-started" or events[0]["format"] != 1 or events[-1]["event"] != "run-finished":
        return "it has no beginning that this version reads, or no end"
    if {event["event"] for event in events[1:-1]} - {"result", "known-problem"}:
        return "a second beginning or end within"
    if events[-1].get("ended_early"):
        return "it ended early"
    results = [event for event in events if event["event"] == "result"]
    pairs = Counter((result["case"], result["who"]) for result in results)
    announced = {one["name"] for one in events[0]["participants"] if one["role"] == "subject"}
    cases, names = {case for case, _ in pairs}, {who for _, who in pairs} | announced
    if len(cases) != events[0]["cases"]:
        return f"{len(cases)} cases have a result, {events[0]['cases']} were selected"
    if uneven := [(case, who) for case in cases for who in names if pairs[case, who] != 1]:
        return f"{uneven[0][0]} has {pairs[uneven[0]]} results of {uneven[0][1]}"
    return _wrong_sums(events, results) or _wrong_code(events, results)


def _wrong_sums(events: Sequence[Event], results: Sequence[Event]) -> str:
    """Hold the closing event's counts against the sums of the results."""
    verdicts, counts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for result in results:
        verdicts[result["who"], result["verdict"]] += 1
        counts.update({(result["who"], unit): amount for unit, amount in result.get("counts", {}).items()})
    for event in events:
        if event["event"] == "known-problem" and event["kind"] in ("stale", "unexplained"):
            verdicts[event["subject"], "stale"] += 1
    end = events[-1]
    said = {(who, verdict): n for who, by in end["verdicts"].items() for verdict, n in by.items() if n}
    if said != {key: n for key, n in verdicts.items() if n}:
        return f"its end says verdicts {said}, the results are {dict(verdicts)}"
    told = {(who, unit): n for who, by in end["counts"].items() for unit, n in by.items() if n}
    if told != {key: n for key, n in counts.items() if n}:
        return f"its end says counts {told}, the results add up to {dict(counts)}"
    return ""


def _wrong_code(events: Sequence[Event], results: Sequence[Event]) -> str:
    code = events[-1]["exit_code"]
    verdicts = {result["verdict"] for result in results}
    problems = [event["kind"] for event in events if event["event"] == "known-problem"]
    failed = 1 if verdicts & FAILING or problems else 0
    due = 3 if "error" in verdicts or "unmatched" in problems else failed
    return "" if code == due else f"its end says exit code {code}, due is {due}"


def require_sound_run(stream: bytes, code: int, cases: Sequence[str], names: Sequence[str]) -> None:
    """Hold a run's stream to a beginning, one result for each of ``cases`` by each of ``names``, sums that agree, and an end."""
    require(stream.endswith(b"\n"), "the stream's last line is not whole")
    events = [json.loads(line) for line in stream.splitlines()]
    require(events and events[0]["event"] == "run-started", "the stream does not begin with run-started")
    require(events[-1]["event"] == "run-finished", "the stream does not end with run-finished")
    require(events[-1]["exit_code"] == code, f"the run's exit code is {code}, its closing event says {events[-1]['exit_code']}")
    require(code in DOCUMENTED[:-1], f"exit code {code} is none that a run nobody interrupted has")
    if events[-1]["ended_early"]:
        require(code in {3, 4}, f"the run ended early ({events[-1]['ended_early']}) with exit code {code}")
        if "nothing was judged" not in events[-1]["ended_early"]:
            return
        events[-1] = {**events[-1], "ended_early": "", "exit_code": 0}
    wrong = contradiction(events)
    require(not wrong, f"a run's own stream contradicts itself: {wrong}")
    found = sorted((event["case"], event["who"]) for event in events if event["event"] == "result")
    due = sorted((case, who) for case in cases for who in names)
    require(found == due, f"results are lost or too many: {len(found)} instead of {len(due)}")


def require_reports(path: Path, code: int) -> Ended:
    """Make the reports of the stream in ``path`` again: same exit code, files that can be read. Gives what was printed."""
    folder = path.parent / "again"
    ended = invoke("report", str(path), "--to", str(folder))
    require(ended.code == code, f"the run ended with {code}, its report with {ended.code}: {ended.err.strip()[:200]}")
    with no_traceback("reading the reports that were written"):
        ET.parse(folder / "junit.xml")  # noqa: S314 - the harness's own file, which it must be able to write well
        (folder / "summary.md").read_text(encoding="utf-8")
        for report in (folder / "cases").rglob("*.json"):
            json.loads(report.read_bytes())
    return ended
