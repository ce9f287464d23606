"""Before a golden run: what is recorded of each case is what the case declares, and nothing that is due lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from conformance.cases.model import Case, FileInput, ModelInput
from conformance.errors import ConfigurationError
from conformance.ggml_types import BY_ID
from conformance.judge.golden import GoldenAnswer, GoldenStore, Steps, unfold
from conformance.judge.verdict import expectation_text, is_determined, satisfies
from conformance.outcomes import Ok, outcome_name
from conformance.run.steps import CRAFTED_TENSORS, step_op
from conformance.values import Header


def check_recorded(store: GoldenStore, cases: Iterable[Case]) -> None:
    """Make sure that recorded answers can judge these cases. Raises ConfigurationError naming file, case, step and value."""
    for case in cases:
        file, key = store.file(case.suite), case.id.rpartition("/")[2]
        for fault in _faults(case, file.cases.get(key, {})) if file else ():
            raise ConfigurationError(
                f"golden answers of the case {key!r}: {fault}",
                where=str(store.path(case.suite)),
                hint=f"with the authorities installed, record again: gguf-conformance record -s '{case.id}'",
            )


def _faults(case: Case, recorded: dict[str, Steps]) -> Iterator[str]:
    for authority in (name for name in recorded if name in case.expect):
        answers = {step: answer for step in recorded[authority] if (answer := unfold(recorded, authority, step))}
        yield from _contradictions(case, authority, answers)
        yield from _gaps(case, authority, answers)
        yield from _sizes(case, authority, answers)


def _contradictions(case: Case, authority: str, answers: dict[str, GoldenAnswer]) -> Iterator[str]:
    for step, answer in answers.items():
        expects = case.expect[authority].get(step_op(step))
        if expects and not satisfies(answer.outcome, expects):
            found, declared = outcome_name(answer.outcome), expectation_text(expects)
            yield f"{authority}/{step}: the outcome is {found}, the case declares {declared}"


def _gaps(case: Case, authority: str, answers: dict[str, GoldenAnswer]) -> Iterator[str]:
    """Say which tensors of a recorded directory have no recorded bytes, where the case asks for them."""
    header = _directory(answers)
    if header is None or "tensor" not in case.ask or not is_determined(case.expect[authority]["tensor"]):
        return
    if not isinstance(case.input, FileInput | ModelInput):
        return
    due = len(header.tensors) if isinstance(case.input, ModelInput) else CRAFTED_TENSORS
    for index in range(len(header.tensors[:due])):
        if f"tensor[{index}]" not in answers:
            yield f"{authority}/tensor[{index}]: no answer, the case asks for the bytes of each tensor"


def _sizes(case: Case, authority: str, answers: dict[str, GoldenAnswer]) -> Iterator[str]:
    """Say of which tensors the recorded size is not that of its dimensions, where the case has their values dequantized."""
    header = _directory(answers)
    if header is None or "dequantize" not in case.ask or not isinstance(case.input, FileInput | ModelInput):
        return
    for index, tensor in enumerate(header.tensors[:CRAFTED_TENSORS]):
        dims = [int(dim) for dim in tensor.dims] or [1]
        due = BY_ID[tensor.type].row_bytes(dims[0]) * prod(dims[1:])
        if tensor.nbytes is not None and int(tensor.nbytes) != due:
            yield f"{authority}: tensors[{index}].nbytes is {tensor.nbytes}, expected {due} for dims {', '.join(tensor.dims)}"


def _directory(answers: dict[str, GoldenAnswer]) -> Header | None:
    outcomes = (answers[step].outcome for step in ("header", "load") if step in answers)
    return next((outcome.header for outcome in outcomes if isinstance(outcome, Ok) and outcome.header), None)
