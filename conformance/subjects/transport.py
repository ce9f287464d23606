"""What both ways to talk to a subject share: the answer, its bounds, how a start or an end reads."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from conformance.errors import ConfigurationError
from conformance.outcomes import Crash, Error, Memory, Outcome, Protocol, Timeout, Unsupported
from conformance.subjects.answers import excerpt
from conformance.subjects.child import CLOSED_GRACE, Child
from conformance.subjects.manifest import Manifest, require_command
from conformance.subjects.protocol import Request

_COMMAND_SHOWN = 1000


class Answer(msgspec.Struct, frozen=True):
    """What came of one request.

    ``stderr_tail``: the end of what stderr said during it. ``elapsed``: seconds. ``resident_peak``: the largest sample of the
    process tree's resident bytes, None for a request too quick to be sampled.
    """

    outcome: Outcome
    stderr_tail: str = ""
    elapsed: float = 0.0
    resident_peak: int | None = None


class Bounds(msgspec.Struct, frozen=True):
    """The limits of one request: seconds, and resident bytes."""

    time: float
    memory: int


def op_of(request: Request) -> str:
    """Give the op's name as the message carries it."""
    return str(type(request).__struct_config__.tag)


def begin(manifest: Manifest, command: Sequence[str]) -> Child:
    """Start a process of the subject. Raises ConfigurationError that says why it cannot be started."""
    require_command(manifest)
    try:
        return Child(command, manifest.environment, manifest.limits.line)
    except OSError as error:
        message = f"subject {manifest.name}: cannot start `{shown_command(command)}`: {error.strerror}"
        hint = f"Build it again: {manifest.build_hint}" if manifest.build else "Check `command` in the manifest."
        raise ConfigurationError(message, where=str(manifest.source), hint=hint) from None


def shown_command(command: Sequence[str]) -> str:
    """Give the command as a shell takes it, a long one by its beginning."""
    words = shlex.join(command)
    return words if len(words) <= _COMMAND_SHOWN else f"{words[:_COMMAND_SHOWN]}... ({len(words)} characters)"


def fault(child: Child) -> Crash | Protocol:
    """Say why no answer can come any more."""
    if child.full:
        return Protocol(f"a line longer than {child.cap} bytes", excerpt(child.output[:300]))
    if child.how is not None:
        return Crash(child.how, child.stderr_tail)
    return Protocol(f"closed its stdin or stdout and was still alive {CLOSED_GRACE:g} s later", excerpt(child.output))


def hello_error(
    manifest: Manifest, command: Sequence[str], outcome: Outcome, stderr_tail: str, restarts: int = 0
) -> ConfigurationError:
    """Say in one message which subject gave no proper hello, what came instead, and what to do."""
    again = f" in {restarts} successive restarts" if restarts else ""
    said = f"\n  stderr ends: {excerpt(stderr_tail[-180:].strip().encode())}" if stderr_tail.strip() else ""
    message = f"subject {manifest.name}: no hello{again}: {_story(outcome)}\n  command: {shown_command(command)}{said}"
    return ConfigurationError(message, where=str(manifest.source), hint=_advice(manifest, outcome))


def _story(outcome: Outcome) -> str:
    match outcome:
        case Crash(how=how):
            return f"the process ended ({how}) before it answered"
        case Timeout(seconds=seconds):
            return f"no answer within {seconds:g} s"
        case Memory(resident=resident, limit=limit):
            return f"it held {resident} bytes of memory, limit {limit}"
        case Protocol(problem=problem, excerpt=shown):
            return f"{problem}" + (f"; it said: {shown}" if shown else "")
        case Unsupported(reason=text) | Error(message=text):
            return text
    return "it gave another answer"


def _advice(manifest: Manifest, outcome: Outcome) -> str:
    match outcome:
        case Timeout():
            return "Flush stdout after each answer; a slow start needs a larger `limits.hello` in the manifest."
        case Protocol(excerpt=shown) if shown.lstrip().startswith("{"):
            return "What a hello holds is in docs/protocol.md, hello."
        case Protocol():
            return "Stdout is for answers only, one JSON object a line: print everything else to stderr. See docs/protocol.md."
        case Memory():
            return "Raise `limits.memory` in the manifest if the subject needs that much to start."
    return f"Build it again: {manifest.build_hint}" if manifest.build else "Run the command by hand and type a hello."
