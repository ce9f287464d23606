"""What a report says of one failure, as labelled facts: one list that every view lays out its own way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from conformance.judge.divergence import Divergence, FloatBits
from conformance.printable import number, one_line, tail_of
from conformance.report.bits import byte_lines, distance, float_lines
from conformance.report.events import Answered, CaseResult
from conformance.report.summary import Failure
from conformance.report.text import ranges, wrap

_HEADER_OPS = ("header", "load")
# Characters of one fact; the case's JSON has all of them.
LIMIT = 600
_STDERR_LINES = 5
# Columns that prose is broken to in Markdown blocks and JUnit, where nothing says how wide the reader is.
_WIDTH = 100


class Fact(NamedTuple):
    """One printable line of a report; ``label`` is empty on a line that goes on, ``exact`` forbids to break it."""

    label: str
    text: str
    exact: bool = False


def headline(failure: Failure) -> str:
    """Say in a few words what failed: ``diverges from llama.cpp``."""
    verdict, divergence = failure.result.verdict, failure.divergence
    if verdict == "diverge":
        return f"diverges from {one_line(divergence.authority if divergence else failure.result.profile)}"
    if verdict == "authority-drift" and divergence and divergence.authority != failure.result.who:
        return f"answers otherwise than {one_line(divergence.authority)} declares"
    return {
        "known": "diverges as known",
        "stale": "no longer shows its known divergence",
        "authority-drift": "answers otherwise than recorded",
        "authority-crash": "died, and was not expected to",
        "error": "could not be asked",
    }.get(verdict, verdict)


def facts_of(failure: Failure) -> list[Fact]:
    """Give all facts on one failure, the command that repeats it last."""
    result, divergence = failure.result, failure.divergence
    facts = [Fact("signature", one_line(failure.signature, LIMIT))] if divergence else []
    facts += [Fact("", one_line(other.signature, LIMIT)) for other in failure.also]
    facts += _divergence_facts(divergence) if divergence else []
    if result.reason and result.reason not in {located.summary for located in result.divergences}:
        facts.append(Fact("reason", one_line(result.reason, LIMIT)))
    if result.known and result.verdict != "known":
        facts.append(Fact("known", one_line(f"of this case's divergences some are known: {'; '.join(result.known)}", LIMIT)))
    facts += _answer_facts(result, divergence)
    if result.note:
        facts.append(Fact("note", one_line(" ".join(result.note.split()), LIMIT)))
    if result.repeat:
        facts.append(Fact("repeat", one_line(result.repeat), exact=True))
    return facts


def _divergence_facts(divergence: Divergence) -> Iterator[Fact]:
    if place := place_of(divergence):
        yield Fact("where", place)
    yield from _value_facts(divergence)
    if divergence.input is not None:
        yield Fact("input", one_line(divergence.input, LIMIT))
    if amount := amount_of(divergence):
        yield Fact("differs", amount)
    for index, remark in enumerate(divergence.remarks):
        yield Fact("" if index else "remark", one_line(remark, LIMIT))


def place_of(divergence: Divergence) -> str:
    """Say where: the field and offset of a file; or row, block, byte, field and elements of an output."""
    if divergence.row is None and divergence.block is None and divergence.byte is None and not divergence.elements:
        return ", ".join(_file_place(divergence))
    return ", ".join(_block_place(divergence))


def _file_place(divergence: Divergence) -> Iterator[str]:
    if divergence.field is not None:
        yield one_line(divergence.field, LIMIT)
    if divergence.at is not None:
        kind = "offset" if divergence.op in _HEADER_OPS else "output byte"
        yield f"{kind} {number(divergence.at)} ({divergence.at:#x})"


def _block_place(divergence: Divergence) -> Iterator[str]:
    if divergence.row is not None:
        name = f" ({one_line(divergence.row_name, LIMIT)})" if divergence.row_name is not None else ""
        yield f"row {number(divergence.row)}{name}"
    if divergence.block is not None:
        yield f"block {number(divergence.block)} of the output"
    if divergence.byte is not None:
        yield f"byte {number(divergence.byte)} of the block"
    if divergence.field is not None:
        yield f"field {one_line(divergence.field, LIMIT)}"
    if divergence.elements:
        noun = "element" if len(divergence.elements) == 1 else "elements"
        yield f"{noun} {one_line(ranges(divergence.elements), LIMIT)} of the row"
    if divergence.at is not None:
        yield f"output byte {number(divergence.at)} ({divergence.at:#x})"


def _value_facts(divergence: Divergence) -> Iterator[Fact]:
    """Put expected above found, in words and, of floats and bytes, as bits with those at odds marked."""
    bits = divergence.bits or FloatBits(divergence.expected, divergence.found)
    lines = float_lines(bits) if divergence.bits else byte_lines(divergence.expected, divergence.found)
    if lines is None:
        if bits.expected or bits.found:
            yield Fact("expected", one_line(divergence.expected or bits.expected or "(nothing)", LIMIT))
            yield Fact("found", one_line(divergence.found or bits.found or "(nothing)", LIMIT))
        return
    yield from _pattern_facts("expected", divergence.expected, bits.expected, lines.expected)
    yield from _pattern_facts("found", divergence.found, bits.found, lines.found)
    yield Fact("", lines.marks, exact=True)


def _pattern_facts(label: str, words: str, pattern: str, line: str) -> Iterator[Fact]:
    """Leave out words that only repeat the pattern with its decimal value: the line of bits has both."""
    if words and pattern.lower() not in words.lower() and words != line.rpartition("  ")[2]:
        yield Fact(label, one_line(words, LIMIT))
        label = ""
    yield Fact(label, line, exact=True)


def amount_of(divergence: Divergence) -> str:
    """Say how much differs: ``905 of 139,468 bytes: qs 873, d 32``, ``3 of 64 values; at most 7 ulps``."""
    parts = []
    if divergence.different is not None:
        total = divergence.different if divergence.compared is None else divergence.compared
        of = f" of {number(total)}" if divergence.compared is not None else ""
        spread = ", ".join(f"{one_line(field)} {number(count)}" for field, count in divergence.by_field.items())
        parts.append(f"{number(divergence.different)}{of} {_unit(divergence.unit, total)}" + (f": {spread}" if spread else ""))
    if divergence.largest_ulps is not None:
        parts.append(f"at most {distance(divergence.largest_ulps)}")
    return "; ".join(parts)


def _unit(unit: str | None, count: int) -> str:
    """Give the plural noun that differences are counted in as it fits ``count``; longer descriptions stay as they are."""
    noun = one_line(unit or "values", LIMIT)
    return noun.removesuffix("s") if count == 1 and " " not in noun else noun


def _answer_facts(result: CaseResult, divergence: Divergence | None) -> Iterator[Fact]:
    """Show what the participant answered where no located difference shows it, and the end of its stderr where it failed."""
    for answer in result.answers:
        if answer.who != result.who or answer.outcome == "ok":
            continue
        if divergence is None or _op(answer.op) == _op(divergence.op):
            yield Fact("answered", f"{one_line(answer.op)}: {answer_text(answer, LIMIT)}")
            lines = tail_of(answer.stderr, _STDERR_LINES, LIMIT)
            yield from (Fact("" if index else "stderr", line, exact=True) for index, line in enumerate(lines))


def _op(step: str) -> str:
    """Give the op of a step's name: ``tensor[3]`` and ``dot:simd`` are ``tensor`` and ``dot``."""
    return step.partition("[")[0].partition(":")[0]


def answer_text(answer: Answered, limit: int | None = None) -> str:
    """Give an answer in one line: ``reject bad-alignment: alignment is 24, at kv[0].value, offset 48``."""
    told = [part for part in ("; ".join(answer.value.strip().split("\n")), answer.message) if part]
    text = f"{answer.outcome}: {', '.join(told)}" if told else answer.outcome
    if answer.field is not None:
        text += f", at {answer.field}"
    if answer.at is not None:
        text += f", offset {number(answer.at)}"
    return one_line(text, limit)


def laid_out(facts: Sequence[Fact], width: int | None = None) -> list[tuple[str, str]]:
    """Give (label, line) pairs, prose broken to ``width`` columns (None: not at all)."""
    pairs = []
    for fact in facts:
        lines = [fact.text] if fact.exact or width is None else wrap(fact.text, width)
        pairs += [("" if index else fact.label, line) for index, line in enumerate(lines)]
    return pairs


def fact_lines(facts: Sequence[Fact]) -> list[str]:
    """Lay facts out as aligned plain lines, for Markdown blocks and JUnit."""
    return [f"{label:<9}  {text}".rstrip() for label, text in laid_out(facts, _WIDTH)]
