"""docs/spec-coverage.md: each requirement of gguf.md with its cases, and each case on which the authorities differ.

``python -m conformance.cases.coverage`` writes the page from ``requirements`` and the cases.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from conformance.cases.load import load_suites
from conformance.cases.model import AUTHORITIES, Case, Expect
from conformance.cases.requirements import REQUIREMENTS, Requirement
from conformance.errors import EXIT_OK

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "spec-coverage.md"
# Of a requirement's cases as many suites are named, and of each as many keys; how many there are is always said.
_SUITES, _KEYS = 4, 3
_NUMBERED = re.compile(r"(.*?)([0-9]+)")

_HEAD = """# What the cases cover

Written by `python -m conformance.cases.coverage` from the cases and `conformance/cases/requirements.py`; a test holds it to them.
Not to be edited.

- [Requirements](#requirements) · [Where the text is silent](#where-the-text-is-silent)
- [Where the authorities differ](#where-the-authorities-differ)

The text is docs/gguf.md of ggml-org/ggml, in other words here. Labels are those of [reader-rules.md](reader-rules.md): a case
stands for a requirement by bearing one of its labels. `gguf-conformance list --json` has all labels of all cases.

What the text asks of models, not of files, no case asks for: that `general.architecture` is there, and where tensors are
quantized `general.quantization_version`, what the keys of an architecture mean, how files are named and split. No reader of
the container looks at these.
"""


def files(root: Path) -> list[Case]:
    """Give the container cases, by id."""
    return [case for case in load_suites(root) if case.id.startswith("container/")]


def standing_for(requirement: Requirement, cases: Iterable[Case]) -> list[Case]:
    """Give the cases that bear one of the requirement's labels."""
    return [case for case in cases if set(case.covers) & set(requirement.labels)]


def page(cases: Sequence[Case]) -> str:
    """Give the page's text."""
    return "\n".join([_HEAD, *_requirements(cases), *_silent(cases), *_differences(cases)]) + "\n"


def _requirements(cases: Sequence[Case]) -> Iterator[str]:
    yield "## Requirements\n"
    asked = [requirement for requirement in REQUIREMENTS if requirement.strength != "silent"]
    for section, requirements in groupby(asked, key=lambda requirement: requirement.section):
        yield f"### {section}\n\n| requirement | strength | labels | cases |\n|---|---|---|---|"
        for requirement in requirements:
            yield f"| {requirement.text} | {requirement.strength} | {_stood_for(requirement, cases)} |"
        yield ""


def _silent(cases: Sequence[Case]) -> Iterator[str]:
    yield "## Where the text is silent\n\nThere both accepting and refusing are right.\n\n| on | labels | cases |\n|---|---|---|"
    for requirement in REQUIREMENTS:
        if requirement.strength == "silent":
            yield f"| {requirement.text} | {_stood_for(requirement, cases)} |"
    yield ""


def _stood_for(requirement: Requirement, cases: Sequence[Case]) -> str:
    found = standing_for(requirement, cases)
    by_suite = {suite: [_key(case) for case in group] for suite, group in groupby(found, key=lambda case: case.suite)}
    named = [f"{suite}: {_shortened(keys)}" for suite, keys in [*by_suite.items()][:_SUITES]]
    more = f"; in {len(by_suite) - _SUITES} more suites" if len(by_suite) > _SUITES else ""
    return f"{' '.join(requirement.labels)} | {len(found)}: {'; '.join(named)}{more}"


def _shortened(keys: Sequence[str]) -> str:
    shown = _ranges(keys)
    return ", ".join(shown[:_KEYS]) + (", …" if len(shown) > _KEYS else "")


def _differences(cases: Sequence[Case]) -> Iterator[str]:
    """Group the cases on which not all three agree whether to accept, by what they do and by suite."""
    differing = [(answers, case.suite, _key(case)) for case in cases if differ(case) for answers in [_answers(case)]]
    both = sum(len(set(answers[:2])) > 1 for answers, _, _ in differing)
    yield "## Where the authorities differ\n"
    yield f"As the cases declare it, and as a live run confirms: of {len(cases)} files, {len(differing)} are not answered alike by"
    yield f"the two authorities and the text, {both} of these not by the two authorities. Classes of refusals are left out; where"
    yield "the text is silent (`either`) nobody parts from it.\n"
    yield "| llama.cpp | gguf-py | gguf.md | suite | cases |\n|---|---|---|---|---|"
    for (answers, suite), group in groupby(sorted(differing), key=lambda row: row[:2]):
        yield f"| {' | '.join(answers)} | {suite} | {', '.join(_ranges([key for _, _, key in group]))} |"


def differ(case: Case) -> bool:
    """Tell whether the two authorities and the text are expected to part on some op; `either` parts from nobody."""
    return any(len({kind for who in AUTHORITIES for kind in _decided(case.expect[who][op])}) > 1 for op in case.ask)


def _decided(expects: Sequence[Expect]) -> set[str]:
    return {_word(expect) for expect in expects} - {"either", "observe"}


def _answers(case: Case) -> tuple[str, ...]:
    """Say of each authority what it does, op by op where that differs."""
    return tuple(_answer(case, who) for who in AUTHORITIES)


def _answer(case: Case, who: str) -> str:
    by_op = {op: " or ".join(sorted({_word(expect) for expect in case.expect[who][op]})) for op in case.ask}
    words = dict.fromkeys(by_op.values())
    return next(iter(words)) if len(words) == 1 else "; ".join(f"{op} {word}" for op, word in by_op.items())


def _word(expect: Expect) -> str:
    return f"{expect.detail}, wrongly" if expect.kind == "fault" else expect.kind


def _key(case: Case) -> str:
    return case.id.rpartition("/")[2]


def _ranges(keys: Iterable[str]) -> list[str]:
    """Give the keys in order of their numbers, those with consecutive numbers at their end as one range."""
    runs: list[list[str]] = []
    for key in sorted(keys, key=_parts):
        if runs and _follows(runs[-1][-1], key):
            runs[-1].append(key)
        else:
            runs.append([key])
    return [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]


def _parts(key: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(key)
    return (match[1], int(match[2])) if match else (key, -1)


def _follows(before: str, key: str) -> bool:
    (stem, number), (own_stem, own) = _parts(before), _parts(key)
    return stem == own_stem and number >= 0 and own == number + 1


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(files(ROOT / "cases")), "utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
