"""The types with one scale, or a scale and a minimum, for all of a block (NVFP4: for a quarter of it).

Source: the ``block_*`` structs in ggml/src/ggml-common.h and what ``dequantize_row_*`` in ggml/src/ggml-quants.c takes their
fields to mean.
"""

from __future__ import annotations

from conformance.judge.exact.model import Block, Model, packed, signed, word
from conformance.judge.exact.real import BF16, E8M0_HALF, F16, F32, UE4M3_HALF

# kvalues_fp4 and kvalues_iq4nl in ggml-common.h: what a nibble stands for. E2M1 stands doubled, so that it is an integer.
FP4 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def _value(b: Block, _i: int) -> dict[str, int]:
    return {"value": word(b["value"])}


def _q1_0(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "q": packed(b["qs"], i, 1)}


def _q2_0(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "q": packed(b["qs"], i, 2)}


def _q4_0(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "q": packed(b["qs"], i, 4, run=16)}


def _q4_1(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "m": word(b["m"]), "q": packed(b["qs"], i, 4, run=16)}


def _fifth_bit(b: Block, i: int) -> int:
    return packed(b["qh"], i, 1) << 4


def _q5_0(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "q": packed(b["qs"], i, 4, run=16) | _fifth_bit(b, i)}


def _q5_1(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "m": word(b["m"]), "q": packed(b["qs"], i, 4, run=16) | _fifth_bit(b, i)}


def _q8(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "q": signed(b["qs"][i])}


def _iq4_nl(b: Block, i: int) -> dict[str, int]:
    nibble = packed(b["qs"], i, 4, run=16)
    return {"d": word(b["d"]), "nibble": nibble, "kvalue": IQ4_NL[nibble]}


def _mxfp4(b: Block, i: int) -> dict[str, int]:
    nibble = packed(b["qs"], i, 4, run=16)
    return {"e": b["e"][0], "nibble": nibble, "kvalue": FP4[nibble]}


def _nvfp4(b: Block, i: int) -> dict[str, int]:
    nibble = packed(b["qs"], i, 4, run=8)
    return {"d": b["d"][i // 16], "nibble": nibble, "kvalue": FP4[nibble]}


def _tq1_0(b: Block, i: int) -> dict[str, int]:
    # A byte is a fraction of 256; its ternary digits, highest first, are elements that stand 32, 16 or 4 apart.
    if i < 160:
        byte, digit = b["qs"][i % 32], i // 32
    elif i < 240:
        byte, digit = b["qs"][32 + i % 16], (i - 160) // 16
    else:
        byte, digit = b["qh"][i % 4], (i - 240) // 4
    behind_the_point = byte * 3**digit & 255
    return {"d": word(b["d"]), "q": behind_the_point * 3 >> 8}


def _tq2_0(b: Block, i: int) -> dict[str, int]:
    return {"d": word(b["d"]), "q": packed(b["qs"], i, 2, run=32)}


_D = {"d": F16}
_D_M = {"d": F16, "m": F16}

MODELS = {
    "F16": Model("value", {"value": F16}, _value),
    "BF16": Model("value", {"value": BF16}, _value),
    "Q1_0": Model("d * (2 * q - 1)", _D, _q1_0),
    "Q2_0": Model("d * (q - 1)", _D, _q2_0),
    "Q4_0": Model("d * (q - 8)", _D, _q4_0),
    "Q4_1": Model("d * q + m", _D_M, _q4_1),
    "Q5_0": Model("d * (q - 16)", _D, _q5_0),
    "Q5_1": Model("d * q + m", _D_M, _q5_1),
    "Q8_0": Model("d * q", _D, _q8),
    # ggml has no function that dequantizes it; `s`, the block's sum times d, is for dot products only.
    "Q8_1": Model("d * q", _D, _q8),
    "Q8_K": Model("d * q", {"d": F32}, _q8),
    "IQ4_NL": Model("d * kvalue", _D, _iq4_nl),
    "MXFP4": Model("e * kvalue", {"e": E8M0_HALF}, _mxfp4),
    "NVFP4": Model("d * kvalue", {"d": UE4M3_HALF}, _nvfp4),
    "TQ1_0": Model("d * (q - 1)", _D, _tq1_0),
    "TQ2_0": Model("d * (q - 1)", _D, _tq2_0),
}
