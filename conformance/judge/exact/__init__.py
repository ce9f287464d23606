"""An exact model of dequantization: the third opinion, where a subject and an authority differ.

Each type is a formula over the fields of its block, computed without rounding, then rounded once to float32. That is also
what ggml does: a test shows for every formula that no step but the last can round. ``docs/exact-model.md`` has the tables.

``python -m conformance.judge.exact.check`` compares the model with llama.cpp on as many blocks as one likes.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.ggml_types import BY_NAME
from conformance.judge.exact import iq, k_quants, simple
from conformance.judge.exact.formula import function, magnitude, names, substituted
from conformance.judge.exact.model import Block, Model
from conformance.judge.exact.real import F32, Real, double, float32_bits, real, text
from conformance.judge.layouts import FIELDS

MODELS: dict[str, Model] = {**simple.MODELS, **k_quants.MODELS, **iq.MODELS}
EXACT_TYPES: tuple[str, ...] = tuple(MODELS)


def exact_dequantize(type_name: str, block: bytes) -> list[int]:
    """Give the float32 bits of each element of one block, NaN as 0x7FC00000.

    Raises ValueError for a type without a model, or bytes that are not one block.
    """
    model, fields = _model(type_name), _fields(type_name, block)
    needed = names(model.formula)
    # Few of a block's elements have operands of their own.
    known: dict[tuple[int, ...], int] = {}
    values = []
    for element in range(BY_NAME[type_name].block):
        operands = model.operands(fields, element)
        key = tuple([operands[name] for name in needed])
        if key not in known:
            known[key] = float32_bits(_evaluate(model, operands))
        values.append(known[key])
    return values


def exact_magnitudes(type_name: str, block: bytes) -> list[float]:
    """Give for each element of one block the sum of the magnitudes of its formula's terms, as a double.

    Raises ValueError as ``exact_dequantize`` does.
    """
    model, fields = _model(type_name), _fields(type_name, block)
    function_of, needed = magnitude(model.formula), names(model.formula)
    known: dict[tuple[int, ...], float] = {}
    values = []
    for element in range(BY_NAME[type_name].block):
        operands = model.operands(fields, element)
        key = tuple([operands[name] for name in needed])
        if key not in known:
            known[key] = double(function_of({name: _read(model, name, operands[name]) for name in needed}))
        values.append(known[key])
    return values


def explain(type_name: str, block: bytes, element: int) -> str:
    """Say in one line how an element comes about: ``d = 0x3c00 = 1, q = 7: d * (q - 8) = 1 * (7 - 8) = -1 -> 0xbf800000``.

    Numbers are exact. Raises ValueError as ``exact_dequantize`` does, and for an element that the block does not have.
    """
    model, fields = _model(type_name), _fields(type_name, block)
    if not 0 <= element < BY_NAME[type_name].block:
        raise ValueError(f"a block of {type_name} has elements 0 to {BY_NAME[type_name].block - 1}, not {element}")
    operands = model.operands(fields, element)
    value = _evaluate(model, operands)
    bits = float32_bits(value)
    result = f"{text(value)}{', rounded' if text(F32.read(bits)) != text(value) else ''} -> 0x{bits:08x}"
    given = ", ".join(f"{name} = {_shown(model, name, operand)}" for name, operand in operands.items())
    if model.formula in operands:
        return f"{given} -> 0x{bits:08x}"
    texts = {name: text(_read(model, name, operand)) for name, operand in operands.items()}
    return f"{given}: {model.formula} = {substituted(model.formula, texts)} = {result}"


def _model(type_name: str) -> Model:
    if type_name not in MODELS:
        raise ValueError(f"no exact model of {type_name}; there is one of each of: {', '.join(EXACT_TYPES)}")
    return MODELS[type_name]


def _fields(type_name: str, block: bytes) -> Block:
    if len(block) != BY_NAME[type_name].nbytes:
        raise ValueError(f"a block of {type_name} has {BY_NAME[type_name].nbytes} bytes, not {len(block)}")
    return {field.name: bytes(block[field.offset : field.offset + field.nbytes]) for field in FIELDS[type_name]}


def _evaluate(model: Model, operands: Mapping[str, int]) -> Real:
    return function(model.formula)({name: _read(model, name, operands[name]) for name in names(model.formula)})


def _read(model: Model, name: str, operand: int) -> Real:
    return model.scales[name].read(operand) if name in model.scales else real(operand)


def _shown(model: Model, name: str, operand: int) -> str:
    """Give an operand as text: an integer, or the bits of a stored number and its value."""
    if name not in model.scales:
        return str(operand)
    number = model.scales[name]
    return f"0x{operand:0{number.digits}x} = {text(number.read(operand))}"
