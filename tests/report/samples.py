"""Synthetic events for the tests of the views. All values are made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from conformance.judge.divergence import Divergence, FloatBits, HexLine
from conformance.report.events import (
    Agreement,
    Answered,
    CaseResult,
    Counts,
    Event,
    EventLog,
    KnownProblem,
    Participant,
    RunFinished,
    RunStarted,
)

HOSTILE = "\x1b[31m`|<img src=x onerror=1>\r\n\x07**b** $x$ \u202e[a](javascript:b) \x00\ufffe\x85 ```end"
LIBRARY = "/opt/a/rather/long/path/to/site-packages/llama_cpp/lib/libggml-base.so"

PARTICIPANTS = (
    Participant("newreader", "0.4.1", "rust", "subject", limits=("strings end at NUL",)),
    Participant(
        "llama.cpp",
        "0.3.36",
        "c",
        "authority",
        {"library": LIBRARY, "arithmetic": "products and sums rounded apart, AVX2"},
    ),
    Participant("gguf-py", "0.19.0", "python", "authority"),
)


def started(cases: int, participants: tuple[Participant, ...] = PARTICIPANTS) -> RunStarted:
    return RunStarted(
        format=1,
        version="9.8.7",
        started="2031-02-03T04:05:06+00:00",
        command="gguf-conformance run --subject newreader",
        oracle="live",
        profile="llama.cpp",
        cases=cases,
        participants=participants,
    )


def finished(exit_code: int = 1, **changes: object) -> RunFinished:
    settings: dict[str, object] = {"exit_code": exit_code, "seconds": 12.34, "verdicts": {}, "counts": {}, **changes}
    return RunFinished(**settings)  # type: ignore[arg-type] - a test may set any field


def ended(events: Iterable[Event], exit_code: int = 1) -> RunFinished:
    """Close a run as its results add up."""
    verdicts: dict[str, Counter[str]] = {}
    counts: dict[str, Counts] = {}
    for event in events:
        if isinstance(event, CaseResult):
            verdicts.setdefault(event.who, Counter())[event.verdict] += 1
            counts[event.who] = counts.get(event.who, Counts()) + event.counts
        if isinstance(event, KnownProblem):
            verdicts.setdefault(event.subject, Counter())[event.kind] += event.kind == "stale"
    return finished(exit_code, verdicts={who: dict(counter) for who, counter in verdicts.items()}, counts=counts)


def result(case: str, verdict: str = "pass", **changes: object) -> CaseResult:
    settings: dict[str, object] = {
        "case": case,
        "who": "newreader",
        "role": "subject",
        "verdict": verdict,
        "profile": "llama.cpp",
        "repeat": f"gguf-conformance run --subject newreader --select {case}",
        **changes,
    }
    return CaseResult(**settings)  # type: ignore[arg-type] - a test may set any field


FIELD = Divergence(
    signature="header:-:accept-for-reject-bad-alignment:-",
    op="header",
    authority="llama.cpp",
    summary="accepts what is to be refused: ok instead of reject bad-alignment",
    expected="reject bad-alignment",
    found="ok",
    field="kv[0].value",
    at=55,
    hexdump=(
        HexLine(24, "11 00 00 00 00 00 00 00", "kv[0].key.length"),
        HexLine(32, "67 65 6e 65 72 61 6c 2e", "kv[0].key.text", elided=9),
        HexLine(55, "18 00 00 00", "kv[0].value", mark=True),
    ),
)
BYTE = Divergence(
    signature="quantize:Q4_K:bytes:qs",
    op="quantize",
    authority="llama.cpp",
    summary="block 12 byte 37 (qs[21]) is 0x3f instead of 0x3d",
    expected="0x3d",
    found="0x3f",
    field="qs[21]",
    at=1765,
    row=3,
    row_name="ties to even",
    block=12,
    byte=37,
    elements=(42, 74),
    input="x[42] = 0.125 (0x3e000000), x[74] = -1 (0xbf800000)",
    different=905,
    compared=139468,
    unit="bytes",
    by_field={"qs": 873, "scales": 32},
    remarks=("a known divergence covers this case with another signature: quantize:Q4_K:bytes:d",),
)
FLOAT = Divergence(
    signature="dequantize:Q8_0:bits:value",
    op="dequantize",
    authority="llama.cpp",
    summary="value 70 is 1.00000024 (0x3f800002) instead of 1 (0x3f800000)",
    expected="1 (0x3f800000)",
    found="1.00000024 (0x3f800002)",
    at=280,
    row=2,
    block=2,
    elements=(6,),
    bits=FloatBits("0x3f800000", "0x3f800002", 2),
    different=3,
    compared=96,
    unit="values",
    largest_ulps=7,
)
NAN = Divergence(
    signature="dequantize:Q8_0:bits:nan",
    op="dequantize",
    authority="llama.cpp",
    summary="value 0 is nan (0x7fc00000) instead of inf (0x7f800000)",
    expected="inf (0x7f800000)",
    found="nan (0x7fc00000)",
    at=0,
    row=0,
    block=0,
    elements=(0,),
    bits=FloatBits("0x7f800000", "0x7fc00000"),
    different=1,
    compared=96,
    unit="values",
)
DEATH = Divergence(
    signature="header:-:crash-SIGFPE:-",
    op="header",
    authority="llama.cpp",
    summary="no verdict on the input: crash SIGFPE",
    expected="an answer or a clean rejection",
    found="crash SIGFPE",
)
FAILED = (
    result(
        "container/alignment/24",
        "diverge",
        reason=FIELD.summary,
        divergences=(FIELD,),
        answers=(
            Answered("newreader", "header", "ok", value="version 3, 1 pair", same=False, seconds=0.004),
            Answered(
                "llama.cpp",
                "header",
                "reject bad-alignment",
                message="24 is no power of two",
                at=55,
                field="kv[0].value",
                same=False,
            ),
            Answered("gguf-py", "header", "reject bad-alignment", same=False),
        ),
        agreement={"llama.cpp": Agreement(0, 1), "gguf-py": Agreement(0, 1)},
        counts=Counts(requests=1, files=1),
        source="alignment.yaml:12",
        recipe="kv: [{key: general.alignment, u32: 24}]\n",
        input_hexdump=FIELD.hexdump,
        expected={"llama.cpp": "reject bad-alignment", "spec": "accept"},
        spec="general.alignment must be a multiple of 8",
        note="the written rule and the library differ here",
        covers=("B08",),
    ),
    result(
        "container/alignment/zero",
        "diverge",
        reason=DEATH.summary,
        divergences=(DEATH,),
        answers=(
            Answered(
                "newreader",
                "header",
                "crash SIGFPE",
                stderr="".join(f"frame {n}\n" for n in range(60)) + "attempt to divide by zero\n",
            ),
        ),
    ),
    result(
        "blocks/quantize/q4_k",
        "diverge",
        reason=BYTE.summary,
        divergences=(BYTE,),
        counts=Counts(requests=1, blocks=4102, bytes=139468),
    ),
    result(
        "blocks/dequantize/q8_0",
        "diverge",
        reason=FLOAT.summary,
        divergences=(FLOAT, NAN),
        counts=Counts(requests=1, blocks=3, values=96),
    ),
)
OTHERS = (
    result("container/alignment/32", counts=Counts(requests=1, files=1), recipe="kv: []\n"),
    result(
        "blocks/dequantize/q4_1", "known", divergences=(FLOAT,), known=("bug: rounds twice",), counts=Counts(blocks=1, values=32)
    ),
    result("blocks/dot/q8_0", "skip", reason="its hello does not declare dot"),
    result("blocks/dot/q4_0", "skip", reason="its hello does not declare dot"),
    result("container/version/one", "skip", reason="llama.cpp does not do this"),
    result("blocks/dot/q8_0", who="llama.cpp", role="authority", counts=Counts(values=3)),
    result(
        "blocks/dot/q4_0",
        "authority-crash",
        who="llama.cpp",
        role="authority",
        reason="crash SIGABRT instead of accept",
        answers=(Answered("llama.cpp", "dot:simd", "crash SIGABRT", stderr="GGML_ASSERT failed"),),
    ),
)
PROBLEM = KnownProblem(
    subject="newreader",
    kind="stale",
    pattern="container/kv/*",
    signature="header:-:value:kv",
    file="adapters/newreader/divergences.yaml",
    edit="delete the entry with pattern 'container/kv/*'\nand signature 'header:-:value:kv'",
)
CASES = len({one.case for one in (*FAILED, *OTHERS)})
# One of everything: four failures, a known divergence, skips for two reasons, a dead authority, a stale entry.
RICH: tuple[Event, ...] = (
    started(CASES),
    *FAILED,
    *OTHERS,
    PROBLEM,
    ended((*FAILED, *OTHERS, PROBLEM)),
)
PASSED = (
    result("container/alignment/32", counts=Counts(files=1)),
    result("container/alignment/64", counts=Counts(files=1)),
)
GREEN: tuple[Event, ...] = (started(2), *PASSED, ended(PASSED, 0))


def hostile_stream() -> tuple[Event, ...]:
    """Every free text of a stream is HOSTILE."""
    divergence = Divergence(
        signature=HOSTILE,
        op=HOSTILE,
        authority=HOSTILE,
        summary=HOSTILE,
        expected=HOSTILE,
        found=HOSTILE,
        field=HOSTILE,
        row_name=HOSTILE,
        row=1,
        input=HOSTILE,
        bits=FloatBits(HOSTILE, HOSTILE),
        different=1,
        unit=HOSTILE,
        by_field={HOSTILE: 1},
        hexdump=(HexLine(0, HOSTILE, HOSTILE, mark=True, elided=3), HexLine(16, "60606060", HOSTILE)),
        remarks=(HOSTILE, HOSTILE),
    )
    answer = Answered(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, field=HOSTILE, stderr=HOSTILE, same=False)
    texts = {"reason": HOSTILE, "source": HOSTILE, "recipe": HOSTILE, "spec": HOSTILE, "note": HOSTILE, "repeat": HOSTILE}
    shared = {
        **texts,
        "who": HOSTILE,
        "profile": HOSTILE,
        "answers": (answer,),
        "covers": (HOSTILE,),
        "expected": {HOSTILE: HOSTILE},
        "agreement": {HOSTILE: Agreement(1, 1)},
        "input_hexdump": divergence.hexdump,
    }
    return (
        started(5, (Participant(HOSTILE, HOSTILE, HOSTILE, "subject", {HOSTILE: HOSTILE}, (HOSTILE,)),)),
        result(f"a/{HOSTILE}", "diverge", divergences=(divergence,), **shared),
        result("b/../../../escape", "diverge", **shared),
        result("c/known", "known", known=(HOSTILE,), **shared),
        result("c/skip", "skip", **shared),
        result("c/pass", **shared),
        KnownProblem(subject=HOSTILE, kind="stale", pattern=HOSTILE, signature=HOSTILE, file=HOSTILE, edit=HOSTILE),
        finished(1, ended_early=HOSTILE),
    )


def save(events: Iterable[Event], path: Path) -> Path:
    """Write a stream as a run does."""
    with path.open("wb") as sink:
        log = EventLog(sink)
        for event in events:
            log.write(event)
    return path
