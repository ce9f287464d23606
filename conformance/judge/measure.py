"""Compare one answer with another: what the subject answered, and the measure, an authority's answer live or recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from conformance.errors import ConfigurationError
from conformance.judge.divergence import Divergence
from conformance.judge.files import compare_files
from conformance.judge.headers import LONG_ARRAY, ArrayDigests, Difference, Recorded, header_differences, header_divergences
from conformance.judge.numbers import Shape, compare_outputs
from conformance.judge.output import Bytes, Digests
from conformance.judge.view import hides, reduce_header, with_items
from conformance.outcomes import FAILURES, Memory, Ok, Outcome, Reject, Timeout, outcome_name
from conformance.subjects.protocol import View
from conformance.values import Header


class Measure(NamedTuple):
    """An authority's answer to one step, and how much its interface shows; recorded ones keep digests of what is long."""

    authority: str
    outcome: Outcome
    view: View = View()
    output: Bytes | Digests | None = None
    arrays: Mapping[int, ArrayDigests] = MappingProxyType({})


class Given(NamedTuple):
    """A subject's answer to one step."""

    outcome: Outcome
    view: View = View()
    output: Bytes | None = None


def differences(op: str, type_name: str, measure: Measure, given: Given, shape: Shape | None) -> list[Divergence]:
    """Give where ``given`` departs from ``measure``; both are answers to the same request."""
    failed = failure(op, type_name, measure.authority, given.outcome)
    if failed:
        return [failed]
    match measure.outcome, given.outcome:
        case Ok(), Ok():
            return _values(op, measure, given, shape)
        case Reject() as expected, Reject() as found:
            return _classes(op, type_name, measure.authority, expected, found)
        case _:
            return [_wrong_outcome(op, type_name, measure, given.outcome)]


def failure(op: str, type_name: str, authority: str, outcome: Outcome) -> Divergence | None:
    """Give the divergence of an outcome that satisfies no expectation (a crash, a timeout ...); None for ok and reject."""
    if not isinstance(outcome, FAILURES):
        return None
    name = outcome_name(outcome)
    return Divergence(
        signature=f"{op}:{type_name}:{name.replace(' ', '-')}:-",
        op=op,
        authority=authority,
        summary=f"no verdict on the input: {name}{_told(outcome)}",
        expected="an answer or a clean rejection",
        found=name,
    )


def _told(outcome: Outcome) -> str:
    if isinstance(outcome, Timeout):
        return f" (no answer within {outcome.seconds:g} s)"
    if isinstance(outcome, Memory):
        return f" (held {outcome.resident >> 20} MiB, the limit is {outcome.limit >> 20} MiB)"
    for attribute in ("reason", "message", "problem"):
        told = getattr(outcome, attribute, "")
        if told:
            return f" ({told})"
    return ""


def _wrong_outcome(op: str, type_name: str, measure: Measure, found: Outcome) -> Divergence:
    """Give the divergence of accept for reject or the reverse, placed where the side that refuses puts the blame."""
    divergence = wrong_kind(op, type_name, measure.authority, outcome_name(measure.outcome), found)
    if not isinstance(measure.outcome, Reject):
        return divergence
    blame = measure.outcome
    why = f"{divergence.expected}: {blame.message}" if blame.message else divergence.expected
    return msgspec.structs.replace(divergence, expected=why, field=blame.field, at=blame.at)


def wrong_kind(op: str, type_name: str, authority: str, expected: str, found: Outcome) -> Divergence:
    """Give the divergence of a subject that accepts what is to be refused, or the reverse; ``expected`` is an outcome's name."""
    name = outcome_name(found)
    what = "accepts what is to be refused" if isinstance(found, Ok) else "refuses what is to be accepted"
    message = f": {found.message}" if isinstance(found, Reject) and found.message else ""
    return Divergence(
        signature=f"{op}:{type_name}:{name.partition(' ')[0]}-for-{expected.replace(' ', '-')}:-",
        op=op,
        authority=authority,
        summary=f"{what}: {name} instead of {expected}{message}",
        expected=expected,
        found=name,
        field=found.field if isinstance(found, Reject) else None,
        at=found.at if isinstance(found, Reject) else None,
    )


def same_class(expected: str, found: str) -> bool:
    """Tell whether two reject classes agree; "other" agrees with every class."""
    return expected == found or "other" in (expected, found)


def _classes(op: str, type_name: str, authority: str, expected: Reject, found: Reject) -> list[Divergence]:
    if same_class(expected.reject_class, found.reject_class):
        return []
    return [wrong_class(op, type_name, authority, expected.reject_class, found)]


def wrong_class(op: str, type_name: str, authority: str, expected: str, found: Reject) -> Divergence:
    """Give the divergence of a rejection for another reason."""
    return Divergence(
        signature=f"{op}:{type_name}:reject-class:{expected}/{found.reject_class}",
        op=op,
        authority=authority,
        summary=f"refuses for another reason: {found.reject_class} instead of {expected} ({found.message})",
        expected=f"reject {expected}",
        found=f"reject {found.reject_class}",
        field=found.field,
        at=found.at,
    )


def _values(op: str, measure: Measure, given: Given, shape: Shape | None) -> list[Divergence]:
    expected, found = measure.outcome, given.outcome
    if isinstance(expected, Ok) and isinstance(found, Ok) and expected.header and found.header:
        return header_divergences(op, measure.authority, _headers(measure, expected.header, given.view, found.header))
    if op == "write" and measure.output is not None and given.output is not None:
        return compare_files(op, measure.authority, measure.output, given.output)
    if shape is not None and measure.output is not None and given.output is not None:
        return compare_outputs(shape, measure.output, given.output)
    # Nothing passes uncompared: answers without a value are refused before (a subject's as a breach of the protocol).
    raise ConfigurationError(
        f"{measure.authority}'s answer to {op} has no value to compare with", hint="record it again: gguf-conformance record"
    )


def _headers(measure: Measure, expected: Header, view: View, found: Header) -> Iterator[Difference]:
    """Compare what shows through both interfaces; an order, or the end of a string, that one hides is hidden on both sides."""
    ours, theirs = with_items(expected, found), with_items(found, expected)
    left = reduce_header(ours, measure.view, view, long=measure.arrays.keys() | _long_arrays(expected))
    right = reduce_header(theirs, measure.view, view, long=_long_arrays(found))
    recorded = {
        left.places[index]: Recorded(digests, hides(ours.kv[index].items or "", view, measure.view))
        for index, digests in measure.arrays.items()
    }
    return header_differences(left.header, right.header, recorded)


def _long_arrays(header: Header) -> set[int]:
    return {index for index, pair in enumerate(header.kv) if isinstance(pair.value, list) and len(pair.value) > LONG_ARRAY}
