"""The IQ types whose elements are coordinates of grid points: eight a point, or four in IQ3.

Source: the ``block_*`` structs in ggml/src/ggml-common.h and what ``dequantize_row_*`` in ggml/src/ggml-quants.c takes their
fields to mean. ``sign`` is 1 or -1.
"""

from __future__ import annotations

from conformance.judge.exact.grids import grid
from conformance.judge.exact.model import Block, Model, packed, word, words
from conformance.judge.exact.real import F16


def _sign(bit: int) -> int:
    return -1 if bit else 1


def _sign_of_seven(code: int, j: int) -> int:
    """Give the sign of coordinate ``j``: seven bits are stored, the eighth makes the number of minus signs even."""
    return _sign(code >> j & 1 if j < 7 else code.bit_count() & 1)


def _coordinate(name: str, point: int, j: int) -> dict[str, int]:
    return {"point": point, "grid": grid(name)[point][j]}


def _iq2_xxs(b: Block, i: int) -> dict[str, int]:
    # Each 32 elements have eight bytes: four points, then a word of four times seven signs and a scale in its top nibble.
    sub, quarter = i // 32, i % 32 // 8
    point, rest = b["qs"][8 * sub + quarter], words(b["qs"], 2 * sub + 1, 4)
    return {
        "d": word(b["d"]),
        "s": rest >> 28,
        **_coordinate("iq2xxs", point, i % 8),
        "sign": _sign_of_seven(rest >> 7 * quarter & 127, i % 8),
    }


def _iq2_xs(b: Block, i: int) -> dict[str, int]:
    entry = words(b["qs"], i // 8, 2)
    return {
        "d": word(b["d"]),
        "s": packed(b["scales"], i // 16, 4),
        **_coordinate("iq2xs", entry & 511, i % 8),
        "sign": _sign_of_seven(entry >> 9, i % 8),
    }


def _iq2_s(b: Block, i: int) -> dict[str, int]:
    # The first half of qs has the low bytes of the points, the second half the signs.
    low, signs = b["qs"][:32], b["qs"][32:]
    return {
        "d": word(b["d"]),
        "s": packed(b["scales"], i // 16, 4),
        **_coordinate("iq2s", low[i // 8] | packed(b["qh"], i // 8, 2) << 8, i % 8),
        "sign": _sign(packed(signs, i, 1)),
    }


def _iq3_xxs(b: Block, i: int) -> dict[str, int]:
    # Behind the 64 points qs has a word for each 32 elements: four times seven signs, and a scale in its top nibble.
    points, rest = b["qs"][:64], words(b["qs"][64:], i // 32, 4)
    return {
        "d": word(b["d"]),
        "s": rest >> 28,
        **_coordinate("iq3xxs", points[i // 4], i % 4),
        "sign": _sign_of_seven(rest >> 7 * (i % 32 // 8) & 127, i % 8),
    }


def _iq3_s(b: Block, i: int) -> dict[str, int]:
    return {
        "d": word(b["d"]),
        "s": packed(b["scales"], i // 32, 4),
        **_coordinate("iq3s", b["qs"][i // 4] | packed(b["qh"], i // 4, 1) << 8, i % 4),
        "sign": _sign(packed(b["signs"], i, 1)),
    }


def _iq1_s(b: Block, i: int) -> dict[str, int]:
    # An entry of qh has three high bits for each of four points, then three bits of scale, then the sign of the shift.
    entry = words(b["qh"], i // 32, 2)
    high = entry >> 3 * (i % 32 // 8) & 7
    return {
        "d": word(b["d"]),
        "s": entry >> 12 & 7,
        **_coordinate("iq1s", b["qs"][i // 8] | high << 8, i % 8),
        "sign": _sign(entry >> 15),
    }


def _iq1_m(b: Block, i: int) -> dict[str, int]:
    # The four words of scales have four times three bits of scale, and in their top nibbles, lowest first, an f16.
    d = sum((words(b["scales"], k, 2) >> 12) << 4 * k for k in range(4))
    high = packed(b["qh"], i // 8, 4)
    return {
        "d": d,
        "s": words(b["scales"], i // 64, 2) >> 3 * (i % 64 // 16) & 7,
        **_coordinate("iq1s", b["qs"][i // 8] | (high & 7) << 8, i % 8),
        "sign": _sign(high >> 3),
    }


_D = {"d": F16}

MODELS = {
    "IQ1_S": Model("d * (2 * s + 1) * (grid + 0.125 * sign)", _D, _iq1_s),
    "IQ1_M": Model("d * (2 * s + 1) * (grid + 0.125 * sign)", _D, _iq1_m),
    "IQ2_XXS": Model("d * (0.5 + s) * 0.25 * grid * sign", _D, _iq2_xxs),
    "IQ2_XS": Model("d * (0.5 + s) * 0.25 * grid * sign", _D, _iq2_xs),
    "IQ2_S": Model("d * (0.5 + s) * 0.25 * grid * sign", _D, _iq2_s),
    "IQ3_XXS": Model("d * (0.5 + s) * 0.5 * grid * sign", _D, _iq3_xxs),
    "IQ3_S": Model("d * (1 + 2 * s) * grid * sign", _D, _iq3_s),
}
