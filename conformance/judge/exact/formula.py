"""Formulas as a type's table states them, ``d * sc * q - dmin * m``: computed exactly, and shown with numbers in place of names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache

from conformance.judge.exact.real import Real, minus, plus, real, times

Values = Mapping[str, Real]

_NAME = re.compile(r"[a-z]\w*")
_OPERATIONS: dict[type[ast.operator], Callable[[Real, Real], Real]] = {ast.Add: plus, ast.Sub: minus, ast.Mult: times}


@cache
def names(formula: str) -> tuple[str, ...]:
    """Give the names in a formula, each once, in order."""
    return tuple(dict.fromkeys(_NAME.findall(formula)))


@cache
def parse(formula: str) -> ast.expr:
    """Give a formula's tree; its operations stand as ggml's code does them: one at a time, from the left."""
    return ast.parse(formula, mode="eval").body


def evaluate(tree: ast.expr, values: Values) -> Real:
    """Compute a tree without any rounding. Raises ValueError for anything but names, constants, ``+``, ``-`` and ``*``."""
    match tree:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=int() | float() as constant):
            return real(constant)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](evaluate(left, values), evaluate(right, values))
    raise ValueError(f"not part of a formula: {ast.unparse(tree)}")


def substituted(formula: str, texts: Mapping[str, str]) -> str:
    """Give the formula with each name replaced by its text."""
    return _NAME.sub(lambda found: texts[found[0]], formula)
