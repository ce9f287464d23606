"""The K-quants, and IQ4_XS, which is built as they are: super-blocks of 256 elements, whose sub-blocks have small integer scales.

Source: the ``block_*`` structs in ggml/src/ggml-common.h; ``dequantize_row_*`` and ``get_scale_min_k4`` in
ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from conformance.judge.exact.model import Block, Model, packed, signed, word
from conformance.judge.exact.real import F16
from conformance.judge.exact.simple import IQ4_NL


def _q2_k(b: Block, i: int) -> dict[str, int]:
    scale = b["scales"][i // 16]
    return {
        "d": word(b["d"]),
        "dmin": word(b["dmin"]),
        "sc": scale & 15,
        "m": scale >> 4,
        "q": packed(b["qs"], i, 2, run=32),
    }


def _q3_k(b: Block, i: int) -> dict[str, int]:
    # The 16 scales have their four low bits in bytes 0 to 7, their two high bits in bytes 8 to 11.
    low, high = b["scales"][:8], b["scales"][8:]
    sc = packed(low, i // 16, 4, run=8) | packed(high, i // 16, 2, run=4) << 4
    q = packed(b["qs"], i, 2, run=32) | packed(b["hmask"], i, 1, run=32) << 2
    return {"d": word(b["d"]), "sc": sc, "q": q}


def _scale_and_min(scales: bytes, sub: int) -> dict[str, int]:
    # Sub-blocks 0 to 3 have six bits of a byte each; 4 to 7 a nibble each, their two high bits atop the first eight bytes.
    if sub < 4:
        return {"sc": scales[sub] & 63, "m": scales[sub + 4] & 63}
    nibbles, above_scale, above_min = scales[sub + 4], scales[sub - 4] >> 6, scales[sub] >> 6
    return {"sc": nibbles & 15 | above_scale << 4, "m": nibbles >> 4 | above_min << 4}


def _q4_k(b: Block, i: int) -> dict[str, int]:
    q = packed(b["qs"], i, 4, run=32)
    return {"d": word(b["d"]), "dmin": word(b["dmin"]), **_scale_and_min(b["scales"], i // 32), "q": q}


def _q5_k(b: Block, i: int) -> dict[str, int]:
    q = packed(b["qs"], i, 4, run=32) | packed(b["qh"], i, 1, run=32) << 4
    return {"d": word(b["d"]), "dmin": word(b["dmin"]), **_scale_and_min(b["scales"], i // 32), "q": q}


def _q6_k(b: Block, i: int) -> dict[str, int]:
    q = packed(b["ql"], i, 4, run=64) | packed(b["qh"], i, 2, run=32) << 4
    return {"d": word(b["d"]), "sc": signed(b["scales"][i // 16]), "q": q}


def _iq4_xs(b: Block, i: int) -> dict[str, int]:
    ls = packed(b["scales_l"], i // 32, 4) | packed(b["scales_h"], i // 32, 2) << 4
    nibble = packed(b["qs"], i, 4, run=16)
    return {"d": word(b["d"]), "ls": ls, "nibble": nibble, "kvalue": IQ4_NL[nibble]}


_D = {"d": F16}
_D_DMIN = {"d": F16, "dmin": F16}

MODELS = {
    "Q2_K": Model("d * sc * q - dmin * m", _D_DMIN, _q2_k),
    "Q3_K": Model("d * (sc - 32) * (q - 4)", _D, _q3_k),
    "Q4_K": Model("d * sc * q - dmin * m", _D_DMIN, _q4_k),
    "Q5_K": Model("d * sc * q - dmin * m", _D_DMIN, _q5_k),
    "Q6_K": Model("d * sc * (q - 32)", _D, _q6_k),
    "IQ4_XS": Model("d * (ls - 32) * kvalue", _D, _iq4_xs),
}
