"""Real implementations, all at once: their adapters are built, and the cases run over those that could be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from conformance.errors import EXIT_HARNESS, ConfigurationError, UsageError
from conformance.logged import Say
from conformance.printable import one_line
from conformance.run.setup import distinct
from conformance.subjects.building import build, missing_tools
from conformance.subjects.manifest import Manifest, find_manifest, known_names
from conformance.subjects.process import Subject


class Peer(NamedTuple):
    """An adapter, by the ``word`` that names it, and how it can be used: ``problem`` says why not, ``built`` what was done."""

    word: str
    built: str = ""
    problem: str = ""
    left_out: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether it was built, and answered its hello."""
        return not (self.problem or self.left_out)


def peers_command(words: Sequence[str], run: Callable[[tuple[str, ...]], int], say: Say, *, only_present: bool) -> int:
    """Build the adapters, ``run`` the cases over the usable ones, and tell of each what became of it; gives the exit code.

    Without ``words`` all adapters that have build commands. With ``only_present`` those whose language is not on this machine
    are left out, which is told. An adapter that cannot be built or started makes the exit code 3; the others are run all the same.
    ``say`` is told what the builds do. Raises UsageError where two adapters bear one name.
    """
    chosen = _chosen(words)
    distinct([one.manifest for one in chosen if one.manifest is not None])  # before minutes are spent on building them
    peers = [_prepared(one, say, only_present) for one in chosen]
    usable = tuple(peer.word for peer in peers if peer.is_usable)
    try:
        code = run(usable) if usable else EXIT_HARNESS
    finally:  # also where one of them ends the run: of the others it is told what they are
        sys.stdout.write("".join(f"{line}\n" for line in _lines(peers)))
    return EXIT_HARNESS if any(peer.problem and not peer.left_out for peer in peers) else code


class _Chosen(NamedTuple):
    """An adapter as it was named, with its manifest, or why there is none."""

    word: str
    manifest: Manifest | None
    problem: ConfigurationError | None = None


def _chosen(words: Sequence[str]) -> list[_Chosen]:
    """Give the adapters by their words, each once. Raises UsageError for one that is not known, or has nothing to build."""
    found: dict[object, _Chosen] = {}
    for one in map(_found, dict.fromkeys(words or known_names())):
        if one.manifest is not None and not one.manifest.build:
            if words:
                hint = f"run it as it is: gguf-conformance run --subject {one.word}"
                raise UsageError(f"{one.word} has no build commands", hint=hint)
            continue
        found.setdefault(one.manifest.source.resolve() if one.manifest else one.word, one)
    return list(found.values())


def _found(word: str) -> _Chosen:
    try:
        return _Chosen(word, find_manifest(word, check_command=False))
    except ConfigurationError as problem:
        return _Chosen(word, None, problem)


def _prepared(chosen: _Chosen, say: Say, only_present: bool) -> Peer:
    """Build one adapter and greet it."""
    word, manifest, broken = chosen
    if manifest is None:
        say(str(broken))
        return Peer(word, problem=broken.message if broken else "")
    missing = missing_tools(manifest)
    if only_present and missing:
        return Peer(word, problem=f"{', '.join(missing)} not on PATH", left_out=True)
    say(f"building {manifest.name} into {manifest.built}")
    try:
        seconds = build(manifest, say)
        _greet(manifest)
    except ConfigurationError as problem:
        say(str(problem))
        return Peer(word, problem=problem.message)
    return Peer(word, built="nothing has changed" if seconds is None else f"built in {seconds:.0f} s")


def _greet(manifest: Manifest) -> None:
    """Start the adapter once. Raises ConfigurationError where it gives no hello: a run of all would end at that."""
    with Subject(manifest) as subject:
        subject.start()


def _lines(peers: Sequence[Peer]) -> Iterator[str]:
    width = max(len(one_line(peer.word)) for peer in peers) if peers else 0
    for peer in peers:
        state = f"left out: {peer.problem}" if peer.left_out else f"FAILED: {peer.problem}" if peer.problem else peer.built
        yield f"{one_line(peer.word):<{width}}  {one_line(state)}"
