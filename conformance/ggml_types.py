"""The harness's own table of ggml types, kept apart from the reference's so that neither can hide the other's error.

Source: the enum ``ggml_type`` in ggml/include/ggml.h and the ``block_*`` structs in ggml/src/ggml-common.h. A test holds
the table to the live library.
"""

from __future__ import annotations

from typing import NamedTuple


class GgmlType(NamedTuple):
    """One ggml type: its number in a file, elements a block and bytes a block; removed types have neither."""

    id: int
    name: str
    block: int
    nbytes: int

    @property
    def removed(self) -> bool:
        """True for ids that ggml has withdrawn."""
        return self.block == 0

    def row_bytes(self, cols: int) -> int:
        """Give the bytes of a row of ``cols`` elements; ``cols`` is a multiple of the block."""
        return cols // self.block * self.nbytes


_ROWS = """
0 F32 1 4
1 F16 1 2
2 Q4_0 32 18
3 Q4_1 32 20
4 Q4_2 0 0
5 Q4_3 0 0
6 Q5_0 32 22
7 Q5_1 32 24
8 Q8_0 32 34
9 Q8_1 32 36
10 Q2_K 256 84
11 Q3_K 256 110
12 Q4_K 256 144
13 Q5_K 256 176
14 Q6_K 256 210
15 Q8_K 256 292
16 IQ2_XXS 256 66
17 IQ2_XS 256 74
18 IQ3_XXS 256 98
19 IQ1_S 256 50
20 IQ4_NL 32 18
21 IQ3_S 256 110
22 IQ2_S 256 82
23 IQ4_XS 256 136
24 I8 1 1
25 I16 1 2
26 I32 1 4
27 I64 1 8
28 F64 1 8
29 IQ1_M 256 56
30 BF16 1 2
31 Q4_0_4_4 0 0
32 Q4_0_4_8 0 0
33 Q4_0_8_8 0 0
34 TQ1_0 256 54
35 TQ2_0 256 66
36 IQ4_NL_4_4 0 0
37 IQ4_NL_4_8 0 0
38 IQ4_NL_8_8 0 0
39 MXFP4 32 17
40 NVFP4 64 36
41 Q1_0 128 18
42 Q2_0 64 18
"""

BY_ID: dict[int, GgmlType] = {
    int(row[0]): GgmlType(int(row[0]), row[1], int(row[2]), int(row[3])) for row in map(str.split, _ROWS.strip().splitlines())
}
BY_NAME: dict[str, GgmlType] = {kind.name: kind for kind in BY_ID.values()}
