"""What adds up over the steps of a case for one participant, and the result that an event carries."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable

import msgspec

from conformance.cases.fieldmap import Field
from conformance.cases.model import BlocksInput, Case, DotInput, Expect, FileInput, Input, ModelInput, RowsInput
from conformance.cases.written import to_yaml
from conformance.judge.divergence import Divergence, HexLine
from conformance.judge.hexdump import dump_file
from conformance.judge.signature import Signature
from conformance.judge.verdict import StepVerdict, expectation_text
from conformance.outcomes import Crash, Error, Ok, Outcome, Protocol, Reject, Unsupported, outcome_name
from conformance.report.events import Agreement, Answered, CaseResult, Counts, OpCount, VerdictName
from conformance.run.participants import Reply
from conformance.run.prepare import Prepared
from conformance.run.steps import Step
from conformance.values import Header

# A model has hundreds of steps: the answers of the first ones and of those that differ are kept.
KEPT_ANSWERS = 12
KEPT_DIFFERENT = 24
# Divergences with one signature are counted after the first.
KEPT_DIVERGENCES = 40


class Tally:
    """One participant in one case."""

    def __init__(self, case: Case, who: str, *, authority: bool) -> None:
        self.case = case
        self.who = who
        self.is_authority = authority
        self.counts = Counts()
        self.seconds = 0.0
        self.skipped: Counter[str] = Counter()
        self.not_asked: dict[str, None] = {}
        self.divergences: dict[str, Divergence] = {}
        self.answers: list[Answered] = []
        self.agreement: dict[str, Agreement] = {}
        self.by_op: dict[tuple[str, str], OpCount] = {}
        self.is_file = isinstance(case.input, FileInput)
        self._judged = False
        self._compared: set[str] = set()
        self._met: set[str] = set()
        self._left_out: set[str] = set()
        self._file_compared = False

    def meet(self, step: Step) -> None:
        """Note that the case has such a step, whether it is asked or not."""
        self._met.add(step.asked)

    def leave_out(self, step: Step, budget: float) -> None:
        """Note that a step was not asked because those before it took longer than ``budget`` seconds."""
        self._left_out.add(step.asked)
        reason = f"the case took longer than {budget:g} s: the rest was not asked"
        self.skip(reason, reason)

    def skip(self, reason: str, kind: str) -> None:
        """Note that a step was not asked or not compared; ``kind`` is the reason without what differs from case to case."""
        self.skipped[reason] += 1
        self.not_asked[kind] = None

    def add(self, step: Step, reply: Reply, verdict: StepVerdict, others: dict[str, tuple[Outcome, bool]]) -> None:
        """Add one step; ``others`` holds each authority's outcome, and whether the participant's answer equals it."""
        self.seconds += reply.seconds
        if verdict.skipped:
            self.skip(verdict.skipped, verdict.skipped)
            return
        self._judged = True
        if verdict.same is not None:
            self.counts += step.counts
            self._count_op(step, different=not verdict.same)
            self._compared.add(step.asked)
            self._file_compared |= step.op in {"header", "load", "write"}
        for divergence in verdict.divergences:
            self._keep(step, divergence)
        self._note(step, reply, verdict, others)

    def _count_op(self, step: Step, *, different: bool) -> None:
        if step.numbers is None:
            return
        kind, op = step.numbers.kind, f"{step.asked} with imatrix" if step.imatrix else step.asked
        counted = OpCount(kind.name, op, 1, step.numbers.rows * step.numbers.cols // kind.block, int(different))
        before = self.by_op.get((kind.name, op))
        self.by_op[kind.name, op] = before + counted if before else counted

    def _keep(self, step: Step, divergence: Divergence) -> None:
        if divergence.signature in self.divergences or len(self.divergences) >= KEPT_DIVERGENCES:
            return
        where = f"{step.name}: " if step.name != step.asked else ""
        # Of a refusal or a death the place is one in the file, which a report on an output would call the output's.
        at = divergence.at if not step.has_output or Signature.of(divergence.signature).of_values else None
        field = f"data[{step.tensor_index}]" if step.tensor_bytes is not None and self.is_file else divergence.field
        self.divergences[divergence.signature] = msgspec.structs.replace(
            divergence, summary=where + divergence.summary, at=at, field=field
        )

    def _note(self, step: Step, reply: Reply, verdict: StepVerdict, others: dict[str, tuple[Outcome, bool]]) -> None:
        for name, (_, same) in others.items():
            before = self.agreement.get(name, Agreement())
            self.agreement[name] = Agreement(before.same + same, before.different + (not same))
        room = KEPT_DIFFERENT if verdict.divergences else KEPT_ANSWERS
        if len(self.answers) >= room:
            return
        answered = _answered(self.who, step, reply.outcome, reply, verdict.same)
        self.answers.append(msgspec.structs.replace(answered, value=", ".join(filter(None, (answered.value, verdict.told)))))
        self.answers += [_answered(name, step, outcome, None, same) for name, (outcome, same) in others.items()]

    def result(self, profile: str, prepared: Prepared, command: str) -> CaseResult:
        """Give the event of this participant; known divergences are not told from others yet."""
        located = tuple(locate(divergence, self.case, prepared) for divergence in self.divergences.values())
        verdict = self._verdict()
        marks = [mark for divergence in located if (mark := file_offset(divergence, prepared)) is not None]
        return CaseResult(
            case=self.case.id,
            who=self.who,
            role="authority" if self.is_authority else "subject",
            verdict=verdict,
            profile=profile,
            reason=self._reason(verdict),
            divergences=located,
            answers=tuple(self.answers),
            agreement=self.agreement,
            counts=msgspec.structs.replace(self.counts, files=int(self._file_compared)),
            by_op=tuple(self.by_op.values()),
            seconds=round(self.seconds, 6),
            source=f"{self.case.suite}.yaml:{self.case.line}",
            recipe=recipe_text(self.case),
            input_hexdump=_input_dump(prepared, marks[0] if marks else None),
            expected=_expected(self.case),
            spec=self.case.spec,
            note=self.case.note,
            covers=self.case.covers,
            not_asked=tuple(self.not_asked),
            uncompared=tuple(op for op in self.case.ask if op not in self._compared),
            undecided=tuple(op for op in self.case.ask if op not in self._met or op in self._left_out),
            repeat=f"{command} --select {shlex.quote(self.case.id)}",
        )

    def _verdict(self) -> VerdictName:
        if not self.divergences:
            return "pass" if self._judged else "skip"
        if not self.is_authority:
            return "diverge"
        died = any(":expectation:crash" in signature for signature in self.divergences)
        return "authority-crash" if died else "authority-drift"

    def _reason(self, verdict: VerdictName) -> str:
        if self.divergences:
            return next(iter(self.divergences.values())).summary
        reasons = "; ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in self.skipped.items())
        return reasons if verdict == "skip" or not reasons else f"not compared: {reasons}"


def _answered(who: str, step: Step, outcome: Outcome, reply: Reply | None, same: bool | None) -> Answered:
    reject = outcome if isinstance(outcome, Reject) else Reject()
    return Answered(
        who=who,
        op=step.name if step.name != step.op else step.asked,
        outcome=outcome_name(outcome),
        message=_message(outcome),
        value=_value(step, outcome),
        at=reject.at,
        field=reject.field,
        same=same,
        seconds=round(reply.seconds, 6) if reply else 0.0,
        stderr=reply.stderr[-1000:] if reply and not isinstance(outcome, Ok) else "",
    )


def _message(outcome: Outcome) -> str:
    match outcome:
        case Protocol(problem=problem, excerpt=said) if said and problem.startswith("not JSON"):
            return f"{problem}; it said: {said}"
        case Reject(message=text) | Error(message=text) | Unsupported(reason=text) | Protocol(problem=text):
            return text
        case Crash():
            return outcome.last_words
        case _:
            return ""


def _value(step: Step, outcome: Outcome) -> str:
    if not isinstance(outcome, Ok):
        return ""
    if outcome.header is not None:
        return header_line(outcome.header)
    if step.numbers is not None:
        return f"{step.numbers.output_bytes} bytes"
    return "a file" if step.described is not None else f"{step.tensor_bytes} bytes"


def header_line(header: Header) -> str:
    """Say in one line what a header holds."""
    pairs, tensors = len(header.kv), len(header.tensors)
    return (
        f"version {header.version}, {pairs} pair{'s' * (pairs != 1)}, {tensors} tensor{'s' * (tensors != 1)}, "
        f"alignment {header.alignment}, data at {header.data_offset}"
    )


def locate(divergence: Divergence, case: Case, prepared: Prepared) -> Divergence:
    """Add where in the file it is and the bytes around, where the input is a file that the builder made.

    ``at`` of a difference in an output stays the output's own offset: the file shows where its tensor's bytes stand.
    """
    if prepared.fields is None or prepared.data is None:
        return divergence
    if not _is_header_op(divergence):
        mark = file_offset(divergence, prepared)
        if mark is None or divergence.hexdump:
            return divergence
        return msgspec.structs.replace(divergence, hexdump=dump_file(prepared.data, prepared.fields, mark=mark, limit=12))
    path, at = divergence.field, divergence.at
    if path is None and at is None:
        path = next(iter(patched(case)), None) or _place_of_class(divergence, prepared)
    field = _find(prepared, path) if path else prepared.fields.at(at) if at is not None else None
    if field is None:
        return divergence
    offset = field.offset if at is None else at
    dump = dump_file(prepared.data, prepared.fields, mark=offset, limit=12)
    return msgspec.structs.replace(divergence, field=path or field.path, at=offset, hexdump=dump)


def file_offset(divergence: Divergence, prepared: Prepared) -> int | None:
    """Give the offset in the file that a divergence is about, None where it is about none."""
    if _is_header_op(divergence):
        return divergence.at
    field = _find(prepared, divergence.field) if divergence.field and prepared.fields is not None else None
    within = 0 if divergence.op == "write" else divergence.at or 0  # of a written file the place is one in that file
    return None if field is None else field.offset + within


def _is_header_op(divergence: Divergence) -> bool:
    return divergence.op in {"header", "load"}


# Where the fault of a reject class stands, whatever the file.
_PLACES = {"bad-magic": "magic", "bad-version": "version", "byte-order": "version"}
_ALIGNMENT = b"general.alignment"


def _place_of_class(divergence: Divergence, prepared: Prepared) -> str | None:
    """Give the field that a rejection without a place can only be about; None where its class does not tell."""
    assert prepared.fields is not None and prepared.data is not None  # noqa: S101 - the caller has looked
    rejected = divergence.signature.partition("for-reject-")[2].partition(":")[0]
    if rejected != "bad-alignment":
        return _PLACES.get(rejected)
    at = prepared.data.find(_ALIGNMENT)
    key = prepared.fields.at(at) if at >= 0 else None
    return f"{key.path.removesuffix('.key')}.value" if key else None


def _find(prepared: Prepared, path: str) -> Field | None:
    """Give the field at ``path``, or the first part of it where the path names a whole that the map keeps in parts."""
    assert prepared.fields is not None  # noqa: S101 - the caller has looked
    found = (prepared.fields.find(candidate) for candidate in (path, f"{path}[0]", f"{path}.length"))
    return next((field for field in found if field is not None), None)


def patched(case: Case) -> Iterable[str]:
    """Give the field paths that the case's recipe overwrites: what it is about."""
    recipe = case.input.recipe if isinstance(case.input, FileInput) else {}
    return recipe.get("patch") or ()


def recipe_text(case: Case) -> str:
    """Give the case's input as YAML, as a person would write it, what is put before it, and in what way."""
    document = _recipe(case.input)
    if case.before:
        document["before"] = [_recipe(before.input) | {"ask": list(before.ask)} for before in case.before]
    if put := msgspec.to_builtins(case.put):
        document["put"] = put
    text = to_yaml(document)
    return text if len(text) <= 4000 else text[:4000] + "…\n"


def _recipe(source: Input) -> dict[str, object]:
    match source:
        case FileInput(recipe=recipe):
            document: dict[str, object] = recipe
        case ModelInput():
            document = {"model": {key: str(value) for key, value in msgspec.structs.asdict(source).items()}}
        case RowsInput(type=name, recipe=recipe, imatrix=imatrix, x=x):
            document = {"type": name, "rows": recipe, "imatrix": imatrix, "x": x}
        case BlocksInput(type=name, recipe=recipe):
            document = {"type": name, "blocks": recipe}
        case DotInput(type=name, weights=weights, x=x):
            document = {"type": name, "weights": weights, "x": x}
    return {key: value for key, value in msgspec.to_builtins(document).items() if value is not None}


def _input_dump(prepared: Prepared, mark: int | None) -> tuple[HexLine, ...]:
    if prepared.data is None or prepared.fields is None:
        return ()
    return dump_file(prepared.data, prepared.fields, mark=mark)


def _expected(case: Case) -> dict[str, str]:
    return {authority: _expected_text(ops) for authority, ops in case.expect.items()}


def _expected_text(ops: dict[str, tuple[Expect, ...]]) -> str:
    """Give one authority's expectations: once where all ops have the same, else op by op."""
    texts = {op: expectation_text(expects) for op, expects in ops.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{op}: {text}" for op, text in texts.items())
