"""From what a user asks for to a plan: which cases, which subjects, which oracle. Shared by the command and the pytest plugin."""

from __future__ import annotations

import importlib.util
import os
import shlex
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from conformance.cases.load import load_suites
from conformance.cases.model import Case, ModelInput
from conformance.cases.select import select
from conformance.errors import AuthorityMissingError, UsageError
from conformance.judge.golden import GoldenStore
from conformance.models import locate
from conformance.packages import Progress, silent
from conformance.places import cases_root
from conformance.run.engine import RunPlan
from conformance.subjects.building import outdated
from conformance.subjects.manifest import Manifest, find_manifest

Oracle = Literal["live", "golden"]
LIBRARY_VARIABLE = "GGUF_CONFORMANCE_GGML_LIB"
# The module that each authority needs.
_MODULES = {"llama.cpp": "llama_cpp", "gguf-py": "gguf"}
_INSTALL = {
    "llama.cpp": "build it so that its bits do not depend on the machine: gguf-conformance build-authority",
    "gguf-py": "install it: pip install gguf==0.19.0",
}


class Options(NamedTuple):
    """What ``run`` and pytest are told. ``oracle`` and ``profile`` None leave the choice to the environment and the manifests.

    With ``judges_only`` a live run asks the authorities alone that judge its subjects.
    """

    subjects: tuple[str, ...]
    select: tuple[str, ...] = ()
    oracle: Oracle | None = None
    profile: str | None = None
    cases: Path | None = None
    jobs: int | None = None
    validate: bool = False
    judges_only: bool = False

    @property
    def root(self) -> Path:
        """The folder of the cases."""
        return self.cases or cases_root()


def installed(authority: str) -> bool:
    """Tell whether an authority can be started here, without starting it."""
    if authority == "llama.cpp" and os.environ.get(LIBRARY_VARIABLE):
        return True
    return importlib.util.find_spec(_MODULES[authority]) is not None


def choose_oracle(wanted: Oracle | None) -> Oracle:
    """Give the oracle: the one asked for, else live where llama.cpp's library is installed."""
    return wanted or ("live" if installed("llama.cpp") else "golden")


def live_authorities(profiles: Collection[str] = ("spec",)) -> tuple[Manifest, ...]:
    """Give the manifests of the authorities that judge by these profiles: by ``spec`` all of them do.

    Raises AuthorityMissingError for one that is not installed.
    """
    wanted = [name for name in _MODULES if name in profiles or "spec" in profiles]
    for name in wanted:
        if not installed(name):
            raise AuthorityMissingError(
                f"a live run needs the authority {name}, which is not installed",
                hint=f"{_INSTALL[name]}\n  or judge by recorded answers: --oracle golden",
            )
    return tuple(find_manifest(name) for name in wanted)


def available_authorities() -> tuple[Manifest, ...]:
    """Give the manifests of the authorities that are installed."""
    return tuple(find_manifest(name) for name in _MODULES if installed(name))


def record_command(options: Options) -> str:
    """Give the command that records answers for these cases, without its selection."""
    return shlex.join(["gguf-conformance", "record", *(("--cases", str(options.cases)) if options.cases else ())])


def repeat_words(options: Options) -> list[str]:
    """Give the command that repeats a run, without its selection."""
    words = ["gguf-conformance", "run"]
    for subject in options.subjects:
        words += ["--subject", subject]
    words += ["--oracle", choose_oracle(options.oracle)]
    if options.profile:
        words += ["--profile", options.profile]
    if options.cases:
        words += ["--cases", str(options.cases)]
    if options.validate:
        words.append("--validate")
    if options.judges_only:
        words.append("--judges-only")
    return words


def load_cases(options: Options) -> tuple[list[Case], list[Case]]:
    """Give the selected cases and all of them. Raises ConfigurationError, UsageError."""
    every = load_suites(options.root)
    return select(every, options.select), every


def make_plan(options: Options, progress: Progress = silent) -> RunPlan:
    """Make the plan of a run. Raises GgufConformanceError for whatever is wrong with what is asked."""
    if not options.subjects:
        raise UsageError("no subject", hint="name one: --subject impl, or the folder of an adapter")
    chosen, every = load_cases(options)
    subjects = [find_manifest(name) for name in dict.fromkeys(options.subjects)]
    for manifest in filter(outdated, subjects):
        progress(f"{manifest.name} was built of other sources than are there now; build it again: {manifest.build_hint}")
    live = choose_oracle(options.oracle) == "live"
    if live:
        _not_an_authority(subjects)
    judging = [options.profile or manifest.profile for manifest in subjects]
    profiles = judging if options.judges_only else ("spec",)
    return RunPlan(
        cases=chosen,
        all_ids=[case.id for case in every],
        subjects=distinct(subjects),
        authorities=live_authorities(profiles) if live else (),
        store=GoldenStore(options.root / "golden"),
        locate=locator(progress),
        profile=options.profile,
        jobs=options.jobs or os.cpu_count() or 1,
        command=shlex.join([*repeat_words(options), *(word for pattern in options.select for word in ("--select", pattern))]),
        repeat=shlex.join(repeat_words(options)),
        record=record_command(options),
        validate=options.validate,
    )


def locator(progress: Progress) -> Callable[[ModelInput], Path]:
    """Give the function that finds, or fetches, a model's file."""
    return lambda model: locate(model, progress)


def _not_an_authority(subjects: Sequence[Manifest]) -> None:
    """Refuse a subject that bears an authority's name in a live run: it would be judged by itself."""
    for manifest in subjects:
        if manifest.name in _MODULES:
            raise UsageError(
                f"the subject {manifest.source} is called {manifest.name!r}, as the authority that judges it",
                hint="give it another `name` in its manifest, or hold it to recorded answers: --oracle golden",
            )


def distinct(subjects: Sequence[Manifest]) -> Sequence[Manifest]:
    """Make sure that names tell the subjects apart."""
    names: dict[str, Manifest] = {}
    for manifest in subjects:
        if manifest.name in names:
            raise UsageError(
                f"two subjects are called {manifest.name!r}: {names[manifest.name].source} and {manifest.source}",
                hint="give one of them another `name` in its manifest",
            )
        names[manifest.name] = manifest
    return subjects
