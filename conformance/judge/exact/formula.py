"""Formulas as a type's table states them, ``d * sc * q - dmin * m``: computed exactly, and shown with numbers in place of names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter

from conformance.judge.exact.real import Real, minus, plus, real, times

Function = Callable[[Mapping[str, Real]], Real]

_NAME = re.compile(r"[a-z]\w*")
_OPERATIONS: dict[type[ast.operator], Callable[[Real, Real], Real]] = {ast.Add: plus, ast.Sub: minus, ast.Mult: times}


@cache
def names(formula: str) -> tuple[str, ...]:
    """Give the names in a formula, each once, in order."""
    return tuple(dict.fromkeys(_NAME.findall(formula)))


@cache
def magnitude(formula: str) -> Function:
    """Give the function from the values of a formula's names to the sum of the magnitudes of its terms: differences are added.

    With ``d * q - m`` that is ``|d| * |q| + |m|``: what errors of rounding are measured by. Raises ValueError as ``function`` does.
    """
    sized = function(formula.replace("-", "+"))
    return lambda values: sized({name: value._replace(negative=False) for name, value in values.items()})


@cache
def function(formula: str) -> Function:
    """Give the function from the values of a formula's names to its exact value: no operation rounds.

    Operations are done as ggml's code does them, one at a time and from the left. Raises ValueError for anything but names,
    constants, ``+``, ``-`` and ``*``.
    """
    return _function(ast.parse(formula, mode="eval").body)


def _function(tree: ast.expr) -> Function:
    match tree:
        case ast.Name(id=name):
            return itemgetter(name)
        case ast.Constant(value=int() | float() as constant):
            value = real(constant)
            return lambda _: value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            operation, first, second = _OPERATIONS[type(op)], _function(left), _function(right)
            return lambda values: operation(first(values), second(values))
    raise ValueError(f"not part of a formula: {ast.unparse(tree)}")


def substituted(formula: str, texts: Mapping[str, str]) -> str:
    """Give the formula with each name replaced by its text."""
    return _NAME.sub(lambda found: texts[found[0]], formula)
