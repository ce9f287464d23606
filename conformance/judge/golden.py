"""Recorded answers of the authorities: ``golden/<suite>.json`` beside the cases.

Short answers are kept whole, long arrays and outputs as digests of small ranges, so that a difference can be located without
the authority at hand. An answer equal to an earlier one of the same case is a reference to it (``"=llama.cpp/header"``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from conformance.errors import ConfigurationError
from conformance.judge.golden_check import answer_faults
from conformance.judge.headers import LONG_ARRAY, ArrayDigests, digest_array
from conformance.judge.output import GoldenOutput
from conformance.outcomes import Crash, Ok, Outcome
from conformance.regular import read_regular
from conformance.subjects.protocol import View
from conformance.values import Header

FORMAT = 1


class GoldenAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an authority answered to one step: the outcome, the arrays left out of its header, its output."""

    outcome: Outcome
    arrays: dict[int, ArrayDigests] = {}
    output: GoldenOutput | None = None


class GoldenAuthority(msgspec.Struct, frozen=True, omit_defaults=True):
    """The authority that a golden file was recorded from."""

    version: str
    view: View
    language: str = ""
    details: dict[str, str] = {}


# A step's answer, or "=authority/step" for one that is equal to an earlier one of the case.
Steps = dict[str, GoldenAnswer | str]


class GoldenFile(msgspec.Struct, omit_defaults=True):
    """One suite's recorded answers: ``cases[key][authority][step]``."""

    format: int
    authorities: dict[str, GoldenAuthority]
    cases: dict[str, dict[str, Steps]]


def record_answer(outcome: Outcome, output: GoldenOutput | None) -> GoldenAnswer:
    """Condense a live answer to what a golden file keeps; a rejection's message and place are kept to be shown, not judged."""
    if isinstance(outcome, Crash):
        outcome = Crash(outcome.how)
    if not (isinstance(outcome, Ok) and outcome.header):
        return GoldenAnswer(outcome, {}, output)
    header, arrays = _condense(outcome.header)
    return GoldenAnswer(Ok(header), arrays, output)


def _condense(header: Header) -> tuple[Header, dict[int, ArrayDigests]]:
    long = {
        index: digest_array(pair.value)
        for index, pair in enumerate(header.kv)
        if isinstance(pair.value, list) and len(pair.value) > LONG_ARRAY
    }
    pairs = [msgspec.structs.replace(pair, value=[]) if index in long else pair for index, pair in enumerate(header.kv)]
    return msgspec.structs.replace(header, kv=pairs), long


def fold(answers: dict[str, dict[str, GoldenAnswer]]) -> dict[str, Steps]:
    """Replace answers of one case that repeat an earlier one by a reference to it."""
    seen: dict[bytes, str] = {}
    folded: dict[str, Steps] = {}
    for authority, steps in answers.items():
        folded[authority] = {}
        for step, answer in steps.items():
            name = f"={authority}/{step}"
            first = seen.setdefault(msgspec.json.encode(answer), name)
            folded[authority][step] = answer if first == name else first
    return folded


def unfold(case: dict[str, Steps], authority: str, step: str) -> GoldenAnswer | None:
    """Give the recorded answer of an authority to a step of a case; None where none is recorded."""
    answer = case.get(authority, {}).get(step)
    if answer is None:
        return None
    found = _origin(case, answer)
    if found is None:
        raise ConfigurationError(f"golden reference {answer!r} leads nowhere", hint="record it again: gguf-conformance record")
    return found


def _origin(case: dict[str, Steps], answer: GoldenAnswer | str) -> GoldenAnswer | None:
    """Give the answer itself, or the one that it refers to; None where the reference leads nowhere."""
    if isinstance(answer, GoldenAnswer):
        return answer
    source, _, origin = answer.removeprefix("=").partition("/")
    found = case.get(source, {}).get(origin)
    return found if isinstance(found, GoldenAnswer) else None


def _faults(case: dict[str, Steps]) -> Iterator[str]:
    """Say what is wrong with a case's recorded answers."""
    for authority, steps in case.items():
        for step, answer in steps.items():
            found, where = _origin(case, answer), f"{authority}/{step}"
            if found is None:
                yield f"{where}: the reference {answer!r} leads nowhere"
                continue
            named = where if found is answer else f"{where}, which is {answer!r}"
            yield from (f"{named}: {fault}" for fault in answer_faults(step, found.outcome, found.arrays, found.output))


_CASES = msgspec.json.Decoder(dict[str, Steps])


def _read_case(raw: bytes | msgspec.Raw) -> tuple[str, dict[str, Steps]]:
    """Give what is wrong with a case's recorded answers, empty if nothing is, and the answers."""
    try:
        case = _CASES.decode(raw)
    except (msgspec.DecodeError, RecursionError) as problem:
        return str(problem), {}
    return next(_faults(case), ""), case


class _RawFile(msgspec.Struct):
    """A golden file whose cases are not read yet: each is on its own, so that what is wrong is told of the one case."""

    format: int
    authorities: dict[str, GoldenAuthority]
    cases: dict[str, msgspec.Raw]


class GoldenStore:
    """Reads golden files on demand; one a suite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, GoldenFile | None] = {}

    def path(self, suite: str) -> Path:
        """Give the file of a suite."""
        return self.folder / f"{suite}.json"

    def file(self, suite: str) -> GoldenFile | None:
        """Give a suite's recorded answers, None where there are none; raises ConfigurationError for a broken file."""
        if suite not in self._files:
            self._files[suite] = self._read(suite, ())
        return self._files[suite]

    def sound(self, suite: str, again: Collection[str]) -> GoldenFile | None:
        """Give a suite's recorded answers, but for damaged ones of the cases ``again``: they are about to be recorded again."""
        return self._read(suite, again)

    def _read(self, suite: str, again: Collection[str]) -> GoldenFile | None:
        path = self.path(suite)
        if not path.exists():
            return None
        raw = self._raw(suite, path)
        cases: dict[str, dict[str, Steps]] = {}
        for key, answers in raw.cases.items():
            fault, case = _read_case(answers)
            if not fault:
                cases[key] = case
            elif key not in again:
                raise ConfigurationError(
                    f"golden answers of the case {key!r}: {fault}",
                    where=str(path),
                    hint=f"with the authorities installed, record again: gguf-conformance record -s '{suite}/{key}'",
                )
        return GoldenFile(raw.format, raw.authorities, cases)

    def _raw(self, suite: str, path: Path) -> _RawFile:
        hint = f"delete the file and, with the authorities installed, record again: gguf-conformance record -s '{suite}'"
        try:
            raw = msgspec.json.decode(read_regular(path), type=_RawFile)
        except (OSError, msgspec.DecodeError, RecursionError) as problem:
            raise ConfigurationError(f"golden answers cannot be read: {problem}", where=str(path), hint=hint) from problem
        if raw.format != FORMAT:
            told = f"golden answers have format {raw.format}, this version reads {FORMAT}"
            raise ConfigurationError(told, where=str(path), hint=hint)
        return raw

    def answer(self, suite: str, key: str, authority: str, step: str) -> GoldenAnswer | None:
        """Give the recorded answer, None where none is recorded."""
        file = self.file(suite)
        return unfold(file.cases[key], authority, step) if file and key in file.cases else None

    def authority(self, suite: str, name: str) -> GoldenAuthority | None:
        """Give what an authority's answers of a suite were recorded from."""
        file = self.file(suite)
        return file.authorities.get(name) if file else None

    def write(self, suite: str, file: GoldenFile) -> Path:
        """Write a suite's answers, one case a line so that changes read well in a diff."""
        path = self.path(suite)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_pretty(file))
        self._files[suite] = file
        return path


def _pretty(file: GoldenFile) -> bytes:
    encode = msgspec.json.encode
    cases = b",\n".join(encode(key) + b":" + encode(answers) for key, answers in sorted(file.cases.items()))
    head = b'{"format":%d,\n"authorities":%s,\n"cases":{\n' % (file.format, encode(file.authorities))
    return head + cases + b"\n}}\n"
