"""The grids of the IQ types: sets of points whose coordinates take a few values only.

``grids.txt`` has them in an encoding of its own, one grid a line: name, number of points, the values that a coordinate can
take, and a bit set in base64. Bit ``c`` (of byte ``c // 8``, lowest bit first) is set where the point is in the grid whose
coordinates are the digits of ``c``, coordinate 0 the lowest, to the base of the number of values. Points are numbered in the
order of ``c``.

Source: the tables ``iq2xxs_grid``, ``iq2xs_grid``, ``iq2s_grid``, ``iq3xxs_grid``, ``iq3s_grid`` and ``iq1s_grid`` in
ggml/src/ggml-common.h, which are data of the format. A test holds them to the library point by point.
"""

from __future__ import annotations

import base64
from functools import cache
from importlib import resources

from conformance.errors import ConfigurationError

Grid = list[tuple[int, ...]]


def grid(name: str) -> Grid:
    """Give a grid's points (``iq1s``, ``iq2xxs``, ``iq2xs``, ``iq2s``, ``iq3xxs``, ``iq3s``); each a tuple of coordinates."""
    return _grids()[name]


@cache
def _grids() -> dict[str, Grid]:
    """Read ``grids.txt``. Raises ConfigurationError where a line does not hold as many points as it says."""
    lines = resources.files(__package__).joinpath("grids.txt").read_text("ascii").splitlines()
    grids = {}
    for line in lines:
        name, count, values, bits = line.split()
        grids[name] = _decode([int(value) for value in values.split(",")], base64.b64decode(bits))
        if len(grids[name]) != int(count):
            raise ConfigurationError(
                f"the grid {name} has {len(grids[name])} points instead of {count}",
                where="conformance/judge/exact/grids.txt",
                hint="The file is damaged: install the package again.",
            )
    return grids


def _decode(values: list[int], bits: bytes) -> Grid:
    """Give the points of a bit set; with three values they have eight coordinates, with eight values four."""
    length = 8 if len(values) == 3 else 4
    codes = (code for code in range(8 * len(bits)) if bits[code // 8] >> code % 8 & 1)
    return [tuple(values[code // len(values) ** j % len(values)] for j in range(length)) for code in codes]
