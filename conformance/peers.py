"""Real implementations, all at once: their adapters are built, and the cases run over those that could be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from conformance.errors import EXIT_HARNESS, ConfigurationError, UsageError
from conformance.report.text import one_line
from conformance.subjects.building import build, missing_tools
from conformance.subjects.manifest import Manifest, find_manifest, known_names
from conformance.subjects.process import Subject

Say = Callable[[str], None]


class Peer(NamedTuple):
    """An adapter, by the ``word`` that names it, and how it can be used: ``problem`` says why not, ``built`` what was done."""

    word: str
    manifest: Manifest
    built: str = ""
    problem: str = ""
    left_out: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether it was built, and answered its hello."""
        return not (self.problem or self.left_out)


def peers_command(words: Sequence[str], run: Callable[[tuple[str, ...]], int], *, only_present: bool) -> int:
    """Build the adapters, ``run`` the cases over the usable ones, and tell of each what became of it; gives the exit code.

    Without ``words`` all adapters that have build commands. With ``only_present`` those whose language is not on this machine
    are left out, which is told. An adapter that cannot be built or started makes the exit code 3; the others are run all the same.
    """
    peers = [_prepared(word, manifest, only_present) for word, manifest in _chosen(words)]
    usable = tuple(peer.word for peer in peers if peer.is_usable)
    code = run(usable) if usable else EXIT_HARNESS
    sys.stdout.write("".join(f"{line}\n" for line in _lines(peers)))
    return EXIT_HARNESS if any(peer.problem and not peer.left_out for peer in peers) else code


def _chosen(words: Sequence[str]) -> list[tuple[str, Manifest]]:
    """Give the adapters by their words, each once. Raises UsageError for one that there is nothing to build of."""
    found = [(word, find_manifest(word, check_command=False)) for word in dict.fromkeys(words or known_names())]
    idle = [word for word, manifest in found if not manifest.build]
    if words and idle:
        raise UsageError(f"{idle[0]} has no build commands", hint=f"run it as it is: gguf-conformance run --subject {idle[0]}")
    return [(word, manifest) for word, manifest in found if manifest.build]


def _prepared(word: str, manifest: Manifest, only_present: bool) -> Peer:
    """Build one adapter and greet it."""
    missing = missing_tools(manifest)
    if only_present and missing:
        return Peer(word, manifest, problem=f"{', '.join(missing)} not on PATH", left_out=True)
    _say(f"building {manifest.name} into {manifest.built}")
    try:
        seconds = build(manifest, _say)
        _greet(manifest)
    except ConfigurationError as problem:
        _say(str(problem))
        return Peer(word, manifest, problem=problem.message)
    return Peer(word, manifest, built="nothing has changed" if seconds is None else f"built in {seconds:.0f} s")


def _greet(manifest: Manifest) -> None:
    """Start the adapter once. Raises ConfigurationError where it gives no hello: a run of all would end at that."""
    with Subject(manifest) as subject:
        subject.start()


def _lines(peers: Sequence[Peer]) -> Iterator[str]:
    width = max(len(one_line(peer.word)) for peer in peers) if peers else 0
    for peer in peers:
        state = f"left out: {peer.problem}" if peer.left_out else f"FAILED: {peer.problem}" if peer.problem else peer.built
        yield f"{one_line(peer.word):<{width}}  {one_line(state)}"


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
