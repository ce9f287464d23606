"""``fuzz``: seeds from the container cases, a time, and what was found; or files that are to be looked at again."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from conformance.cases.load import load_suites
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, ConfigurationError
from conformance.fuzz.oracle import check
from conformance.fuzz.seeds import write_dictionary, write_seeds
from conformance.places import cases_root
from conformance.run.scratch import scratch_folder, writing_to

# libFuzzer's own bounds: what the oracle cannot end by itself, a loop without end and memory that is gone.
_HANG = 20
_MEMORY = 2048
_DONE = re.compile(r"Done (\d+) runs in (\d+) second")
_FOUND = re.compile(r"Test unit written to (\S+)")


class Plan(NamedTuple):
    """How long (seconds), from which ``seed`` (0: libFuzzer draws one), where findings go, and where a corpus is kept."""

    seconds: int
    seed: int
    findings: Path
    corpus: Path | None


def fuzz_command(plan: Plan, files: Sequence[Path]) -> int:
    """Fuzz for a time, or with ``files`` look at these alone. 1 where the reader broke a rule. Raises ConfigurationError."""
    return _again(files) if files else _fuzz(plan)


def _again(files: Sequence[Path]) -> int:
    """Hold the reader to the oracle on each file; all are looked at, whatever happens on the first."""
    code = EXIT_OK
    for path in files:
        try:
            said = check(path.read_bytes())
        except OSError as problem:
            raise ConfigurationError(f"cannot read it: {problem.strerror or problem}", where=str(path)) from problem
        except Exception as fault:  # noqa: BLE001 - what may come out is the question: anything else is the finding
            said, code = f"BROKEN, {type(fault).__name__}: {fault}", EXIT_DIVERGENCE
        _print(f"{path}: {said}")
    return code


def _fuzz(plan: Plan) -> int:
    if importlib.util.find_spec("atheris") is None:
        hint = "pip install 'gguf-conformance[fuzz]' (Linux and macOS)"
        raise ConfigurationError("fuzzing needs the package atheris, which is not installed", hint=hint)
    with scratch_folder() as work:
        seeds, grown = work / "seeds", plan.corpus or work / "corpus"
        with writing_to(work):
            for folder in (seeds, grown, plan.findings):
                folder.mkdir(parents=True, exist_ok=True)
            count = write_seeds(load_suites(cases_root()), seeds)
            write_dictionary(work / "dictionary")
        _print(f"fuzzing impl's reader for {plan.seconds} seconds, from {count} files of the container cases", sys.stderr)
        ended = _run(plan, work / "dictionary", grown, seeds)
    return _told(ended)


def _run(plan: Plan, dictionary: Path, grown: Path, seeds: Path) -> subprocess.CompletedProcess[str]:
    options = {
        "max_total_time": plan.seconds,
        "seed": plan.seed,
        "dict": dictionary,
        "artifact_prefix": f"{plan.findings}/",
        "max_len": 4096,
        "timeout": _HANG,
        "rss_limit_mb": _MEMORY,
        "print_final_stats": 1,
    }
    words = [f"-{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "conformance.fuzz.target", *words, str(grown), str(seeds)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _told(ended: subprocess.CompletedProcess[str]) -> int:
    """Print the figures or the finding. Raises ConfigurationError where the fuzzer itself did not run."""
    if done := _DONE.search(ended.stderr):
        runs, seconds = int(done[1]), int(done[2])
        _print(f"{runs:,} executions in {seconds} s, {runs // max(seconds, 1):,} a second: nothing found")
        return EXIT_OK
    found = _FOUND.search(ended.stderr)
    if not found:
        tail = "\n  ".join((ended.stderr.strip() or ended.stdout.strip()).splitlines()[-5:])
        raise ConfigurationError(f"the fuzzer ended with code {ended.returncode} and found nothing:\n  {tail}")
    _print(f"found: {_reason(ended.stdout + ended.stderr)}")
    _print(f"  the input: {found[1]}\n  again: gguf-conformance fuzz {found[1]}")
    return EXIT_DIVERGENCE


def _reason(text: str) -> str:
    """Give the exception's own line, or libFuzzer's (a timeout, memory)."""
    lines = [line.strip() for line in text.splitlines()]
    after = [lines[i + 1] for i, line in enumerate(lines[:-1]) if "Uncaught Python exception" in line]
    libfuzzer = [line for line in lines if "ERROR: libFuzzer" in line]
    return (after or libfuzzer or ["an input that libFuzzer kept"])[0]


def _print(text: str, stream: TextIO | None = None) -> None:
    print(text, file=stream or sys.stdout, flush=True)
