"""A whole search, of subjects with a fault that is known: what is found, how small it is, and that it is found again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.mutants.catalogue import load_catalogue
from conformance.mutants.make import make
from conformance.search.engine import search
from conformance.search.plan import Plan, Searched
from conformance.subjects.manifest import Manifest, find_manifest, load_manifest

HERE = Path(__file__).parent


def silent(_: str) -> None:
    """Hear nothing."""


def plan(subject: Manifest, **options: Any) -> Plan:
    return Plan(subject=subject, against=find_manifest("impl"), **options)


def made(folder: Path, script: Path, *words: str) -> Manifest:
    folder.mkdir()
    command = ", ".join([sys.executable, str(script), *words])
    (folder / "adapter.yaml").write_text(f"name: {script.stem}\nlanguage: python\ncommand: [{command}]\n")
    return load_manifest(folder)


STORED_SCALE = plan(find_manifest("q8_0-stored-scale"), ops=("quantize",), types=("Q8_0",), examples=5)


@pytest.fixture(scope="module")
def stored_scale() -> Searched:
    return search(STORED_SCALE, silent)


def test_a_fault_in_numbers_is_found_and_made_small(stored_scale: Searched) -> None:
    (finding,) = stored_scale.divergences
    assert finding.signature == "quantize:Q8_0:bytes:qs"
    assert finding.case["type"] == "Q8_0"
    assert finding.case["ask"] == ["quantize"]
    assert finding.nbytes == 4 * 32
    assert finding.values <= 2
    assert not finding.unstable
    assert stored_scale.blocks > 100_000


def test_the_same_seed_finds_the_same(stored_scale: Searched) -> None:
    again = search(STORED_SCALE, silent)
    ours, theirs = ([(one.slug, one.case, one.example, one.inputs) for one in each.findings] for each in (stored_scale, again))
    assert ours == theirs
    assert (again.examples, again.blocks, again.files) == (stored_scale.examples, stored_scale.blocks, stored_scale.files)


def test_known_signatures_are_counted_and_left_alone(stored_scale: Searched) -> None:
    known = frozenset({"quantize:Q8_0:bytes:qs"})
    searched = search(STORED_SCALE._replace(known=known), silent)
    assert (searched.findings, searched.waiting, searched.departs) == ((), 0, False)
    assert set(searched.known) == known
    assert searched.blocks == stored_scale.blocks
    other = search(STORED_SCALE._replace(known=frozenset({"x"})), silent)
    assert (len(other.divergences), other.known) == (1, {})


def test_another_seed_draws_other_inputs(stored_scale: Searched) -> None:
    other = search(STORED_SCALE._replace(seed=5), silent)
    assert other.blocks != stored_scale.blocks


def test_differences_of_readers_are_found_apart_each_in_a_small_file() -> None:
    searched = search(plan(find_manifest("impl-gguf-py"), ops=("header",), examples=3), silent)
    by_signature = {finding.signature: finding for finding in searched.divergences}
    assert by_signature["header:-:value:data_offset"].case["build"] == {}
    assert len(by_signature) > 8
    # A thousand levels of arrays take that many bytes; nothing else does.
    assert max(finding.nbytes for finding in searched.divergences if "too-deep" not in finding.signature) < 200
    assert len({finding.key for finding in searched.divergences}) == len(searched.divergences)


def test_a_death_is_a_finding_and_the_search_goes_on(tmp_path: Path) -> None:
    dying = made(tmp_path / "dying", HERE / "dying_subject.py")
    searched = search(plan(dying, ops=("header",), examples=4), silent)
    assert {finding.signature for finding in searched.divergences} == {"header:-:crash-SIGABRT:-"}
    least = min(searched.divergences, key=lambda finding: finding.nbytes)
    assert least.case["build"]["tensors"] == [{"name": "q", "type": "F32", "dims": []}]
    assert searched.deaths["dying_subject"] > 1
    assert searched.examples == 4


@pytest.mark.parametrize("whose", ["subject", "against"])
def test_what_a_process_keeps_of_an_earlier_request_is_found_with_that_request(tmp_path: Path, whose: str) -> None:
    plain = made(tmp_path / "plain", HERE / "zeros_subject.py")
    remembering = made(tmp_path / "remembering", HERE / "zeros_subject.py", "remember")
    wanted = Plan(subject=plain, against=plain, ops=("dequantize",), types=("Q4_0",), examples=4)
    (finding,) = search(wanted._replace(**{whose: remembering}), silent).divergences
    assert not finding.unstable
    assert finding.signature == "dequantize:Q4_0:bits:zero-sign"
    assert finding.focus == "Q4_0 after others"
    (before,) = finding.case["before"]
    assert before["type"] == "Q4_0"


def test_a_search_may_end_at_the_first() -> None:
    searched = search(plan(find_manifest("q8_0-stored-scale"), ops=("quantize",), seconds=60, stop_at_first=True), silent)
    assert searched.findings == ()
    assert searched.first is not None
    assert searched.first.signature == "quantize:Q8_0:bytes:qs"
    assert searched.seconds < 60


def test_what_was_found_before_is_tried_first(tmp_path: Path) -> None:
    wanted = STORED_SCALE._replace(database=tmp_path)
    (first,) = search(wanted, silent).divergences
    again = search(wanted._replace(examples=1, ops=(), types=("Q4_0",)), silent)
    assert again.divergences[0].example == 0
    assert again.divergences[0].signature == first.signature


def test_an_equal_subject_departs_nowhere() -> None:
    searched = search(plan(find_manifest("impl"), examples=80, types=("Q8_0", "Q4_0")), silent)
    assert searched.findings == ()
    assert searched.files > 1000
    assert searched.blocks > 1000


def test_a_size_that_wraps_is_the_measures_own_fault() -> None:
    wanted = Plan(subject=find_manifest("impl"), against=find_manifest("llama.cpp"), ops=("header", "write"), examples=12)
    searched = search(wanted, silent)
    assert searched.divergences == ()
    theirs = frozenset(finding.signature for finding in searched.findings)
    again = search(wanted._replace(known=theirs), silent)  # what the subject is known for says nothing of the measure
    assert {finding.signature for finding in again.findings} == theirs
    assert theirs
    assert again.known == {}
    assert {finding.signature.split(":")[2] for finding in searched.findings} <= {"contradiction", "crash-SIGABRT"}
    assert any(finding.signature == "header:-:contradiction:tensors[*].nbytes" for finding in searched.findings)


def test_ones_at_the_end_are_nothing_that_a_writer_loses() -> None:
    wanted = plan(load_manifest(make(load_catalogue()["write-ones-kept"])), ops=("write",), seconds=60, stop_at_first=True)
    first = search(wanted, silent).first
    assert first is not None
    assert first.signature.startswith("write:-:bytes:tensors[*].n_dims")
