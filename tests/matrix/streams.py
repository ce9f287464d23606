"""Made-up streams of two runs with subjects that differ; all values are made up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from conformance.judge.divergence import KNOWN_REMARK, Divergence, FloatBits, HexLine
from conformance.report.events import Answered, CaseResult, Counts, Event, EventLog, OpCount, Participant, RunStarted
from tests.report.samples import ended, result

LLAMA = Participant("llama.cpp", "0.3.36", "c", "authority")
GGUF_PY = Participant("gguf-py", "0.19.0", "python", "authority")
GOLDEN = Participant("llama.cpp", "0.3.36", "c", "golden")


def subject(name: str, version: str = "1.0", language: str = "rust") -> Participant:
    return Participant(name, version, language, "subject")


def started(
    cases: int, *participants: Participant, at: str = "2031-02-03T04:05:06+00:00", command: str = "", oracle: str = "live"
) -> RunStarted:
    return RunStarted(
        format=1,
        version="9.8.7",
        started=at,
        command=command or "gguf-conformance run --subject adapters/lax --subject adapters/mortal",
        oracle=oracle,  # type: ignore[arg-type] - one of the two
        profile="llama.cpp",
        cases=cases,
        participants=participants,
    )


def said(who: str, outcome: str, op: str = "header", **more: Any) -> Answered:
    return Answered(who, op, outcome, **more)


def answer(case: str, who: str, outcome: str = "ok", verdict: str = "pass", op: str = "header", **more: Any) -> CaseResult:
    return result(case, verdict, who=who, **{"answers": (said(who, outcome, op),), **more})


def authority(case: str, outcome: str = "ok", who: str = "llama.cpp", op: str = "header") -> CaseResult:
    return answer(case, who, outcome, op=op, role="authority", profile="")


def accepted_wrongly(reject_class: str, *reasons: str) -> Divergence:
    return Divergence(
        signature=f"header:-:ok-for-reject-{reject_class}:-",
        op="header",
        authority="llama.cpp",
        summary=f"accepts what is to be refused: ok instead of reject {reject_class}",
        expected=f"reject {reject_class}",
        found="ok",
        hexdump=(HexLine(24, "11 00", "kv[0].key.length", mark=True),),
        remarks=tuple(f"{KNOWN_REMARK}{reason}" for reason in reasons),
    )


DEATH = Divergence(
    signature="header:-:crash-SIGSEGV:-",
    op="header",
    authority="llama.cpp",
    summary="no verdict on the input: crash SIGSEGV",
    expected="an answer or a clean rejection",
    found="crash SIGSEGV",
)


def numbers(spread: tuple[int, ...], largest: int | None) -> Divergence:
    return Divergence(
        signature="dequantize:Q4_K:bits:value",
        op="dequantize",
        authority="llama.cpp",
        summary="value 70 is 1.00000024 (0x3f800002) instead of 1 (0x3f800000)",
        expected="1 (0x3f800000)",
        found="1.00000024 (0x3f800002)",
        block=2,
        elements=(6,),
        bits=FloatBits("0x3f800000", "0x3f800002", 2),
        different=sum(spread),
        compared=512,
        unit="values",
        largest_ulps=largest,
        by_distance=spread,
    )


REPEAT = "gguf-conformance run --subject adapters/lax --subject adapters/mortal --oracle live --select"
CASES = ("files/a/one", "files/a/two", "files/a/three", "files/b/dead", "numbers/q4_k/few", "numbers/q4_k/many")


def lax_results(name: str = "lax") -> list[CaseResult]:
    """Accepts too much, as known; computes other numbers."""
    known = accepted_wrongly("bad-alignment", "policy: reads on")
    lax = {"divergences": (known,), "known": ("policy: reads on",), "recipe": "kv: [a, long, one]\n"}
    few, many = numbers((0, 3, 1), 3), numbers((0, 0, 4, 0, 1), 9)
    counts, by_op = Counts(blocks=2, values=512), (OpCount("Q4_K", "dequantize", 1, 2, 1),)
    return [
        answer("files/a/one", name, verdict="known", repeat=f"{REPEAT} files/a/one", **lax),
        answer("files/a/two", name, verdict="known", repeat=f"{REPEAT} files/a/two", **{**lax, "recipe": "kv: []\n"}),
        answer("files/a/three", name, "reject bad-magic"),
        answer("files/b/dead", name, "reject truncated"),
        answer("numbers/q4_k/few", name, "ok", "diverge", "dequantize", divergences=(few,), counts=counts, by_op=by_op),
        answer("numbers/q4_k/many", name, "ok", "diverge", "dequantize", divergences=(many,), counts=counts, by_op=by_op),
    ]


def mortal_results(name: str = "mortal") -> list[CaseResult]:
    """Dies once; has no numbers."""
    dead = said(name, "crash SIGSEGV", message="boom", stderr="thread main panicked\nboom\n")
    skips = [
        result(case, "skip", who=name, reason="its hello does not declare dequantize") for case in CASES if case.startswith("numb")
    ]
    return [
        *(answer(case, name, "reject bad-alignment") for case in ("files/a/one", "files/a/two")),
        answer("files/a/three", name, "reject bad-magic"),
        result(
            "files/b/dead",
            "diverge",
            who=name,
            answers=(dead,),
            divergences=(DEATH,),
            reason=DEATH.summary,
            repeat=f"{REPEAT} files/b/dead",
        ),
        *skips,
    ]


def authority_results() -> list[CaseResult]:
    """llama.cpp dies where mortal does, as declared."""
    outcomes = ("reject bad-alignment", "reject bad-alignment", "reject bad-magic", "crash SIGABRT", "ok", "ok")
    ops = ("header",) * 4 + ("dequantize",) * 2
    return [authority(case, outcome, op=op) for case, outcome, op in zip(CASES, outcomes, ops, strict=True)]


def stream(path: Path, results: Iterable[CaseResult], *participants: Participant, whole: bool = True, **about: Any) -> Path:
    """Write a run of these results, and give the path of its stream."""
    made = list(results)
    events: list[Event] = [started(len({one.case for one in made}), *participants, **about), *made]
    if whole:
        exit_code = 1 if any(one.verdict == "diverge" for one in made) else 0
        events.append(ended(made, exit_code))
    path.mkdir(parents=True)
    with (path / "events.ndjson").open("wb") as sink:
        log = EventLog(sink)
        for event in events:
            log.write(event)
    return path / "events.ndjson"


def both(folder: Path) -> Path:
    """Write one run of both subjects."""
    results = [*authority_results(), *lax_results(), *mortal_results()]
    return stream(folder / "both", results, LLAMA, subject("lax"), subject("mortal", language="go"))


def renamed(results: Iterable[CaseResult], **changes: Any) -> list[CaseResult]:
    """Change a field in all results."""
    return [msgspec.structs.replace(one, **changes) for one in results]
