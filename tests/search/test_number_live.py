"""Requests on numbers put to the library and to others: a known fault is found and shrunk, and what is called tame is answered."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import yaml

from conformance.block_ops import NEEDING, TYPES_OF
from conformance.outcomes import Ok
from conformance.search.imatrix_families import TAME_IMATRIX
from conformance.search.number_case import case_of
from conformance.search.number_plans import NumberPlan
from conformance.search.probe import NumberProbe
from conformance.search.row_families import TAME, RowRecipe
from conformance.search.shrink_numbers import shrink
from conformance.subjects.authorities.llama_cpp.library import package_folder
from conformance.subjects.manifest import find_manifest
from conformance.subjects.process import Subject
from tests.search.number_asking import ask, differing

pytestmark = pytest.mark.skipif(package_folder() is None, reason="needs the live library: pip install 'gguf-conformance[live]'")


@pytest.fixture(scope="module")
def library() -> Iterator[Subject]:
    with Subject(find_manifest("llama.cpp")) as subject:
        yield subject


@pytest.fixture(scope="module")
def reference() -> Iterator[Subject]:
    with Subject(find_manifest("impl")) as subject:
        yield subject


@pytest.fixture
def faulty() -> Iterator[Subject]:
    with Subject(find_manifest("q8_0-stored-scale")) as subject:
        yield subject


def apart(probe: NumberProbe, one: Subject, other: Subject, folder: Path) -> npt.NDArray[np.bool_]:
    (mine, left), (its, right) = ask(one, probe, folder), ask(other, probe, folder)
    assert (mine, its) == (Ok(), Ok()), (probe.label, probe.type)
    return differing(left, right, floats=probe.op != "quantize")


def test_a_scale_rounded_too_early_is_found_and_shrunk_to_two_numbers(library: Subject, faulty: Subject, tmp_path: Path) -> None:
    """The greatest of a block decides the scale; one more number is needed that the two scales round differently."""
    plan = NumberPlan(op="quantize", type="Q8_0", cols=256, rows=2000, seed=1, row=RowRecipe("straddle"))
    calls = 0

    def shows(probe: NumberProbe) -> npt.NDArray[np.bool_]:
        nonlocal calls
        calls += 1
        return apart(probe, library, faulty, tmp_path)

    probe = plan.expand()
    assert shows(probe).mean() > 0.5
    small = shrink(probe, shows)
    assert (small.n, small.cols, calls < 70) == (1, 32, True)
    assert shows(small).all()
    assert small.rows is not None
    one, *rest = sorted(small.rows[small.rows != 0].tolist(), key=abs)
    assert len(rest) <= 1
    greatest = abs(rest[0] if rest else one)
    stored = Fraction(float(np.float16(np.float32(greatest) / np.float32(127))))
    assert stored != Fraction(greatest) / 127
    assert len(yaml.safe_dump(case_of(small), default_flow_style=True)) < 150


def test_a_sound_subject_gives_what_the_library_gives(library: Subject, reference: Subject, tmp_path: Path) -> None:
    for family in ("straddle", "ties", "scales", "gaps", "zeros", "nearly"):
        for kind in ("Q8_0", "Q4_0", "Q5_1", "MXFP4"):
            plan = NumberPlan(op="quantize", type=kind, cols=256, rows=200, seed=2, row=RowRecipe(family))
            assert not apart(plan.expand(), library, reference, tmp_path).any(), (family, kind)


def test_products_are_asked_with_one_x_and_with_many(library: Subject, reference: Subject, tmp_path: Path) -> None:
    row = RowRecipe("bell")
    for op, one_x in (("dot", False), ("dot", True), ("matvec", False)):
        plan = NumberPlan(op=op, type="Q4_K", cols=512, rows=50, seed=3, row=row, blocks="sane", one_x=one_x)
        assert not apart(plan.expand(), library, reference, tmp_path).any()


# The other tables take the library many seconds to build.
@pytest.mark.parametrize("kind", ["IQ2_XXS", "IQ2_XS", "IQ3_S"])
def test_the_library_answers_what_is_called_tame(kind: str, library: Subject, tmp_path: Path) -> None:
    """A plan of each family and each kind of importances; the library would abort, or die, where it has no answer."""
    importances = (*TAME_IMATRIX, *(() if kind in NEEDING else (None,)))
    for number, family in enumerate(TAME):
        imatrix = importances[number % len(importances)]
        plan = NumberPlan(op="quantize", type=kind, cols=256, rows=3, seed=number, row=RowRecipe(family, -8, 8), imatrix=imatrix)
        assert plan.tame
        outcome, out = ask(library, plan.expand(2**20), tmp_path)
        assert outcome == Ok(), (family, imatrix)
        assert out.shape[0] == 3


def test_what_is_not_tame_may_kill_it(library: Subject, tmp_path: Path) -> None:
    plan = NumberPlan(op="quantize", type="IQ2_XS", cols=256, rows=3, seed=1, row=RowRecipe("huge"), imatrix="ones")
    assert not plan.tame
    assert ask(library, plan.expand(), tmp_path)[0] != Ok()


def test_the_library_has_what_plans_ask_for(library: Subject) -> None:
    ops = library.identity.ops
    have = {"quantize": ops.quantize, "dequantize": ops.dequantize, "dot": ops.dot, "matvec": ops.matvec}
    for asked, names in TYPES_OF.items():
        op, _, variant = asked.partition(":")
        missing = {f"{name}:{variant}" if variant else name for name in names} - set(have[op])
        assert not missing, asked
