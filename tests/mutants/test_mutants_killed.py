"""Each mutant is killed by the case that the record shows first, in the way that the record shows.

One case a mutant: it takes a process each, and where a loop is changed, its compilation.
"""

from __future__ import annotations

import pytest

from conformance.mutants.catalogue import Mutant, load_catalogue
from conformance.mutants.corpus import plan_for, put, require_reference
from conformance.mutants.matrix import Row, read_record
from conformance.run.engine import RunPlan
from conformance.run.setup import Options

CATALOGUE = load_catalogue()
RECORD = read_record()
# Deaths and faults of the adapter, as signatures tell them.
DEATHS = ("error", "crash", "timeout", "memory", "protocol")


def narrowed(mutant: Mutant) -> Mutant:
    row = RECORD.get(mutant.name, Row(mutant.name, 0, 0, ()))
    return mutant._replace(select=tuple(kill.case for kill in row.first[:1]))


@pytest.fixture(scope="module")
def plan() -> RunPlan:
    """The reference passes all these cases; what is then compiled of it, the mutants take over."""
    made = plan_for([narrowed(mutant) for mutant in CATALOGUE.values()], Options((), oracle="golden", jobs=1))
    require_reference(made)
    return made


def test_the_record_has_every_mutant_and_no_other() -> None:
    assert list(RECORD) == list(CATALOGUE)
    assert [row.name for row in RECORD.values() if not row.killed] == []


@pytest.mark.parametrize("mutant", CATALOGUE.values(), ids=list(CATALOGUE))
def test_a_mutant_is_killed_by_its_first_case(mutant: Mutant, plan: RunPlan) -> None:
    [found] = put([narrowed(mutant)], plan)
    assert found.row.first == RECORD[mutant.name].first[:1]


@pytest.mark.parametrize("mutant", CATALOGUE.values(), ids=list(CATALOGUE))
def test_a_mutant_dies_of_its_fault_and_not_of_a_mistake_in_it(mutant: Mutant) -> None:
    kinds = {kill.signature.split(":")[2].split("-")[0] for kill in RECORD[mutant.name].first}
    assert mutant.dies or not kinds & set(DEATHS)
