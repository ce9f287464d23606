"""Known divergences: one entry holds live and golden, and none hides what changes."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from conformance.errors import ConfigurationError
from conformance.judge.divergence import Divergence
from conformance.report.events import CaseResult
from conformance.run.known import KnownDivergence, KnownLedger, known_problems, load_known
from conformance.subjects.manifest import Manifest, find_manifest
from tests.run.conftest import Bench, Ran

QUANTS = "quantize:Q8_0:bytes:qs"
VALUES = "dequantize:Q8_0:bits:value"
# Wrong in what it quantizes, in what it dequantizes, in an array that golden files digest, and in one array's length.
WRONG = """
import sys
import numpy as np
from impl.serve import main
from impl.subject import Subject
class Wrong(Subject):
    def quantize(self, request):
        done = super().quantize(request)
        blocks = np.fromfile(request["out"], np.uint8)
        blocks[blocks.size // 2 // 34 * 34 + 5] ^= 1
        blocks.tofile(request["out"])
        return done
    def dequantize(self, request):
        done = super().dequantize(request)
        values = np.fromfile(request["out"], "<u4")
        values[-1] ^= 1
        values.tofile(request["out"])
        return done
    def header(self, request):
        answer = super().header(request)
        for pair in answer["kv"]:
            if pair["key"] == "wrong":
                pair["value"][70] = "77"
            if pair["key"] == "short":
                pair["value"].pop(0)
        return answer
    load = header
sys.exit(main(Wrong(), sys.argv[1:]))
"""
ARRAYS = """
suite: small/arrays
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  long:
    build: {kv: [{key: wrong, array: {u32: {fill: 1, count: 2000}}}, {key: short, array: {u32: [NUMBERS]}}]}
""".replace("NUMBERS", ", ".join(str(n) for n in range(100)))


def _subject(bench: Bench, folder: Path, *entries: tuple[str, str]) -> Manifest:
    command = json.dumps(bench.keepable(WRONG))
    (folder / "adapter.yaml").write_text(f"name: wrong\nlanguage: python\ncommand: {command}\n")
    made = [{"pattern": pattern, "signature": signature, "kind": "bug", "reason": "why"} for pattern, signature in entries]
    (folder / "divergences.yaml").write_text(json.dumps({"divergences": made}))
    return find_manifest(folder)


def _verdicts(ran: Ran) -> set[str]:
    return {verdict for (_, who), verdict in ran.verdicts.items() if who == "wrong"}


ARRAY_ENTRIES = [
    ("small/arrays/*", f"{op}:-:{rest}")
    for op in ("header", "load")
    for rest in ("value:kv[*].value[*]", "count:kv[*].value.length")
]


@pytest.mark.parametrize("live", [True, False])
def test_the_same_entries_hold_live_and_golden(bench: Bench, tmp_path: Path, live: bool) -> None:
    """The wrong blocks keep a golden run from dequantizing them: the entry on that is undecided there, not stale."""
    bench.write("small/arrays", ARRAYS)
    bench.record()
    subject = _subject(bench, tmp_path, ("small/blocks/q8_0", QUANTS), ("small/blocks/q8_0", VALUES), *ARRAY_ENTRIES)
    for select in ("small/arrays", "small/blocks/q8_0"):
        ran = bench.run(subject, live=live, select=select)
        assert (ran.code, _verdicts(ran), ran.problems) == (0, {"known"}, [])


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("known", ["quantize:Q4_0:bytes:qs", "quantize:Q8_0:size:output", "quantize:Q8_0:bits:value"])
def test_what_either_oracle_can_tell_from_the_entry_fails(bench: Bench, tmp_path: Path, live: bool, known: str) -> None:
    bench.record()
    subject = _subject(bench, tmp_path, ("small/blocks/q8_0", known), ("small/blocks/q8_0", VALUES))
    ran = bench.run(subject, live=live, select="small/blocks/q8_0")
    assert ran.code == 1
    assert _verdicts(ran) == {"diverge"}


def test_a_digest_alone_does_not_hide_the_field_in_a_live_run(bench: Bench, tmp_path: Path) -> None:
    bench.record()
    subject = _subject(bench, tmp_path, ("small/blocks/q8_0", "quantize:Q8_0:digest:blocks"), ("small/blocks/q8_0", VALUES))
    assert bench.run(subject, live=False, select="small/blocks/q8_0").code == 0
    ran = bench.run(subject, select="small/blocks/q8_0")
    assert (ran.code, ran.problems) == (1, [])
    (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.verdict == "diverge"]
    remarks = " ".join(remark for divergence in result.divergences for remark in divergence.remarks)
    assert "put it in its place" in remarks
    assert f"signature: {QUANTS}" in remarks or f"signature: '{QUANTS}'" in remarks


def _result(*signatures: str, uncompared: tuple[str, ...] = ()) -> CaseResult:
    divergences = tuple(Divergence(signature=s, op=s.partition(":")[0], authority="llama.cpp", summary=s) for s in signatures)
    return CaseResult(
        case="a/b/c",
        who="x",
        role="subject",
        verdict="diverge",
        profile="llama.cpp",
        divergences=divergences,
        uncompared=uncompared,
    )


def _ledger(*signatures: str) -> KnownLedger:
    return KnownLedger(KnownDivergence("a/b/c", signature, "bug", "why") for signature in signatures)


def test_one_known_divergence_does_not_cover_a_second_one() -> None:
    applied = _ledger(QUANTS).apply(_result(QUANTS, VALUES))
    assert applied.verdict == "diverge"
    assert [bool(d.remarks and d.remarks[0].startswith("known bug")) for d in applied.divergences] == [True, False]
    assert _ledger(QUANTS, VALUES).apply(_result(QUANTS, VALUES)).verdict == "known"


def test_what_was_not_compared_does_not_decide() -> None:
    for uncompared, stale in (((), [QUANTS]), (("quantize",), []), (("dequantize",), [QUANTS])):
        ledger = _ledger(QUANTS)
        ledger.note(msgspec.structs.replace(_result(), uncompared=uncompared))
        assert [each.known.signature for each in ledger.stale()] == stale


def test_what_was_not_asked_does_not_decide() -> None:
    """A death may come in any request, and a file be taken where it was refused."""
    accepted = "tensor:F32:ok-for-reject-bad-offset:-"
    for undecided, stale in (((), [accepted]), (("tensor",), []), (("header",), [accepted])):
        ledger = _ledger(accepted)
        ledger.note(msgspec.structs.replace(_result(), undecided=undecided))
        assert [each.known.signature for each in ledger.stale()] == stale


def test_a_death_that_no_longer_happens_is_stale_even_where_only_the_answer_counts() -> None:
    ledger = _ledger("header:-:crash-SIGSEGV:-")
    ledger.note(_result(uncompared=("header",)))
    assert [(each.cases, each.gone) for each in ledger.stale()] == [(["a/b/c"], True)]


def test_each_case_of_a_pattern_has_to_show_it() -> None:
    ledger = KnownLedger([KnownDivergence("a/b/*", QUANTS, "bug", "why")])
    for name, signatures in (("a/b/c", (QUANTS,)), ("a/b/d", ()), ("a/b/e", (VALUES,)), ("a/x/f", ())):
        ledger.note(msgspec.structs.replace(_result(*signatures), case=name))
    assert [(each.cases, each.gone) for each in ledger.stale()] == [(["a/b/d", "a/b/e"], False)]
    (problem,) = known_problems(_manifest(), ledger, ["a/b/c", "a/b/d", "a/b/e"])
    assert (problem.kind, problem.pattern) == ("stale", "a/b/*")
    assert problem.edit.startswith("a/b/d and 1 more do not show it any more")


def test_what_happens_sometimes_is_never_stale() -> None:
    ledger = KnownLedger([KnownDivergence("a/b/*", QUANTS, "limit", "why", sometimes=True)])
    ledger.note(_result())
    assert ledger.stale() == []
    assert ledger.apply(_result(QUANTS)).verdict == "known"


def test_a_case_whose_input_could_not_be_made_shows_nothing() -> None:
    ledger = _ledger(QUANTS)
    ledger.note(msgspec.structs.replace(_result(), verdict="error"))
    assert ledger.stale() == []


def test_a_case_is_taken_out_of_an_entry_of_several(tmp_path: Path) -> None:
    path = tmp_path / "divergences.yaml"
    path.write_text(
        "divergences:\n"
        f"  - {{reason: why, kind: bug, signature: '{QUANTS}', pattern: [a/b/c, a/b/d]}}\n"
        f"  - {{reason: why, kind: bug, signature: '{QUANTS}', pattern: a/b/e}}\n"
    )
    ledger = KnownLedger(load_known(path))
    for name in ("a/b/c", "a/b/d", "a/b/e"):
        ledger.note(msgspec.structs.replace(_result(), case=name))
    edits = [problem.edit for problem in known_problems(_manifest(), ledger, ["a/b/c", "a/b/d", "a/b/e"])]
    assert edits[0] == edits[1]
    assert edits[0].startswith(f"take it out of the entry with signature '{QUANTS}'")
    assert edits[2] == f"delete the entry with pattern 'a/b/e' and signature '{QUANTS}'"


def test_a_reason_that_is_missing_is_said_to_be() -> None:
    ledger = KnownLedger([KnownDivergence("a/b/c", QUANTS, "bug", "")])
    done = ledger.apply(_result(QUANTS))
    assert done.known == ("bug: no reason given yet",)
    assert done.divergences[0].remarks[-1] == "known bug: no reason given yet"


def test_an_entry_without_a_reason_is_told() -> None:
    ledger = KnownLedger([KnownDivergence("a/b/c", sign, "bug", reason) for sign, reason in ((QUANTS, " "), (VALUES, "why"))])
    ledger.note(_result(QUANTS, VALUES))
    assert [(p.kind, p.signature) for p in known_problems(_manifest(), ledger, ["a/b/c"])] == [("unexplained", QUANTS)]


def _manifest() -> Manifest:
    return Manifest(name="x", language="c", command=("x",), folder=Path(), source=Path(), built=Path())


@pytest.mark.parametrize("pattern", ["a/b/c", "a/b", "a", "a/*/c", "**/c", "a/b/", "a/b/?"])
def test_patterns_cover_a_case_whole_or_up_to_a_part(pattern: str) -> None:
    ledger = KnownLedger([KnownDivergence(pattern, QUANTS, "bug", "why")])
    assert ledger.apply(_result(QUANTS)).verdict == "known"
    assert ledger.unmatched(["a/b/c"]) == []
    assert ledger.unmatched(["a/b/cc/d", "x/a/b/d"]) == ([] if pattern in {"a", "a/b", "a/b/"} else list(ledger.entries))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("divergences: [", "divergences.yaml:2: not YAML"),
        ("divergences: 7", "not a list of known divergences: Expected `array`"),
        ("divergences: [{pattern: a, signature: b, kind: mood, reason: c}]", "Invalid enum value 'mood'"),
        ("divergences: [{pattern: a, signature: b, kind: bug}]", "missing required field `reason`"),
        ("divergences: [{pattern: [a, b/c], signature: s, kind: bug, reason: c, smallest: b/d}]", "none of its cases: b/d"),
        ("divergences: []\ndivergences: []\n", "divergences.yaml:2: duplicate key `divergences`"),
        ("divergences: " + "[" * 900 + "]" * 900, "nested more than 100 levels deep"),
    ],
)
def test_a_broken_file_of_known_divergences_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "divergences.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_known(path)
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "divergences.yaml"
    os.mkfifo(path)
    with pytest.raises(ConfigurationError, match="it is a named pipe"):
        load_known(path)


def test_entries_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "divergences.yaml"
    path.write_text("divergences:\n  - {pattern: a/24, signature: 'header:-:value:kv[*].value', kind: policy, reason: no}\n")
    assert load_known(path) == (KnownDivergence("a/24", "header:-:value:kv[*].value", "policy", "no"),)
    lists = "pattern: [a/24, a/25], signature: [s:-:t:u, v:-:w:x], smallest: a/25, sometimes: true"
    path.write_text(f"divergences:\n  - {{{lists}, kind: bug, reason: y}}\n")
    assert [(e.pattern, e.signature, e.sometimes) for e in load_known(path)] == [
        (pattern, signature, True) for pattern in ("a/24", "a/25") for signature in ("s:-:t:u", "v:-:w:x")
    ]
    path.write_text("divergences: []\n")
    assert load_known(path) == load_known(None) == ()
