"""The grammar of ``expect``: what each authority is expected to answer to each op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from conformance.cases.entry import Entry
from conformance.cases.model import AUTHORITIES, Expect, ExpectKind
from conformance.outcomes import REJECT_CLASSES
from conformance.subjects.protocol import OPS

# Forms of one word; `reject` always names its class, `fault` what is done wrongly.
WORDS: tuple[str, ...] = tuple(kind for kind in get_args(ExpectKind) if kind not in ("reject", "fault"))
DETAILED = ("reject", "crash", "fault")
FAULTS = ("accept", "reject")
# The spec is a text: it cannot do these.
_DOINGS = ("unsupported", "crash", "timeout", "memory", "error", "fault")

# Variants whose sums may be added in another order than the op's own.
_SUMS = ("dot:simd", "matvec:simd")

Admissible = tuple[Expect, ...]


def parse_expect(entry: Entry) -> dict[str, Entry]:
    """Check an ``expect`` mapping and give the form of each authority it names. Raises ConfigurationError."""
    forms = entry.mapping(AUTHORITIES)
    for authority, form in forms.items():
        _check_form(authority, form)
    return forms


def expand(
    case: Entry, forms: list[Mapping[str, Entry]], ask: tuple[str, ...], *, complete: bool
) -> dict[str, dict[str, Admissible]]:
    """Give ``expect[authority][op]`` for every asked op; later ``forms`` win over earlier ones, op by op.

    An op without a form is an error where ``complete``, else it is expected to be accepted. Raises ConfigurationError.
    """
    result: dict[str, dict[str, Admissible]] = {}
    for authority in AUTHORITIES:
        layers = [by_op(each[authority], ask) for each in forms if authority in each]
        merged = {op: answer for layer in layers for op, answer in layer.items()}
        if missing := [op for op in ask if op not in merged]:
            if complete:
                hint = f"expect of a file or model names {', '.join(AUTHORITIES)}; write `{authority}: accept`, or what it does"
                raise case.error(f"nothing is expected of `{authority}` for {', '.join(missing)}", hint)
            merged |= dict.fromkeys(missing, (Expect("accept"),))
        result[authority] = {op: merged[op] for op in ask}
        _check_near(case, result[authority])
    return result


def _check_near(case: Entry, expected: Mapping[str, Admissible]) -> None:
    """Refuse `near` where there are no sums, or nothing that they could be near to. Raises ConfigurationError."""
    before: list[str] = []
    for op, answers in expected.items():
        if any(answer.kind == "near" for answer in answers):
            plain = op.partition(":")[0]
            if op not in _SUMS:
                raise case.error(f"`{op}` cannot be `near`", f"that is for {' and '.join(_SUMS)}; write accept")
            if plain not in before:
                raise case.error(f"`{op}` has nothing to be near to", f"ask `{plain}` before it")
        before.append(op)


def by_op(form: Entry, ask: tuple[str, ...]) -> dict[str, Admissible]:
    """Give what a form says of each asked op; ``dot`` speaks for ``dot:simd`` too unless that is named."""
    if not _is_per_op(form):
        return dict.fromkeys(ask, _admissible(form))
    parts = form.mapping()
    named = {op: op if op in parts else op.partition(":")[0] for op in ask}
    return {op: _admissible(parts[name]) for op, name in named.items() if name in parts}


def check_asked(form: Entry, ask: tuple[str, ...]) -> None:
    """Refuse a form that speaks of an op that is not asked. Raises ConfigurationError."""
    if not _is_per_op(form):
        return
    asked = {*ask, *(op.partition(":")[0] for op in ask)}
    for op, part in form.mapping().items():
        if op not in asked:
            raise part.error(f"`{op}` is not asked", f"asked are: {', '.join(ask)}; add it to `ask` or take it out here")


def _is_per_op(form: Entry) -> bool:
    return form.is_mapping() and not any(key in DETAILED for key in form.mapping())


def _check_form(authority: str, form: Entry) -> None:
    parts = [form]
    if _is_per_op(form):
        entries = form.mapping()
        for op in entries:
            if op.partition(":")[0] not in OPS:
                raise form.unknown_key(op, (*DETAILED, *OPS))
        parts = list(entries.values())
    for part in parts:
        for expected in _admissible(part):
            if authority == "spec" and expected.kind in _DOINGS:
                raise part.error(f"the spec cannot `{expected.kind}`", "write accept, {reject: class}, either or observe")


def _admissible(form: Entry) -> Admissible:
    """One form, or a list of forms any of which will do."""
    if not form.is_list():
        return (_single(form),)
    forms = tuple(map(_single, form.sequence()))
    if not forms:
        raise form.error("an empty list admits nothing", "name at least one answer")
    return forms


def _single(form: Entry) -> Expect:
    if form.is_mapping():
        word, detail = form.one_of(DETAILED)
        if word == "reject":
            return Expect("reject", detail.choice(REJECT_CLASSES))
        return Expect("fault", detail.choice(FAULTS)) if word == "fault" else Expect("crash", detail.text())
    if form.value == "reject":
        raise form.error("`reject` names no class", "write {reject: CLASS}; `other` where no class fits")
    word = form.choice(WORDS)
    return Expect(_KINDS[word])


_KINDS: dict[str, ExpectKind] = {kind: kind for kind in get_args(ExpectKind)}
