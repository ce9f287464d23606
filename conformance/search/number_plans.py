"""A small plan of a request on numbers, and the vectorised function that makes its many rows."""

from __future__ import annotations

import msgspec

from conformance.block_ops import SEARCH_SHARE, SEARCHED
from conformance.ggml_types import BY_NAME
from conformance.search.block_families import make_blocks
from conformance.search.draws import Draws
from conformance.search.imatrix_families import TAME_IMATRIX, make_imatrix
from conformance.search.probe import Floats, NumberOp, NumberProbe
from conformance.search.row_families import TAME, TAME_EXPONENTS, WITHOUT_GAPS, RowRecipe, make_rows

MAX_ELEMENTS = 2**20
MAX_ROWS = 2**20


class NumberPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a NumberProbe is made of.

    ``rows``: at most so many. ``row``: the recipe of the float rows (``quantize``) or of ``x`` (products). ``blocks``: the family
    of the blocks (all but ``quantize``). ``imatrix``: the family of the importances, or None. ``one_x``: of ``dot``, one ``x`` for
    all rows.
    """

    op: NumberOp
    type: str
    cols: int
    rows: int
    seed: int
    row: RowRecipe | None = None
    blocks: str = ""
    imatrix: str | None = None
    one_x: bool = False
    variant: str = ""

    @property
    def label(self) -> str:
        """The families in one word: ``ties``, ``ties/tiny``, ``bytes*bell``."""
        row = self.row.family if self.row else ""
        if self.op == "quantize":
            return row if self.imatrix is None else f"{row}/{self.imatrix}"
        return f"{self.blocks}*{row}" if row else self.blocks

    @property
    def tame(self) -> bool:
        """True where ggml is known to have an answer: it neither aborts nor reads what it has not written.

        Raw blocks always are: every byte means something. A quantizer that searches a grid wants numbers and importances of
        ordinary size (docs/block-rules.md, N10 and P6), and the reference function of IQ4_NL no block of zeros (N4).
        """
        if self.op != "quantize" or self.row is None:
            return True
        if self.type not in SEARCHED and not self.variant:
            return True
        low, high = TAME_EXPONENTS
        ordinary = self.row.family in (WITHOUT_GAPS if self.variant else TAME) and low <= self.row.low and self.row.high <= high
        return ordinary and self.imatrix in (None, *TAME_IMATRIX)

    def expand(self, max_elements: int = MAX_ELEMENTS) -> NumberProbe:
        """Make the rows: as many as ``rows`` says and ``max_elements`` allows, at least one. The same plan gives the same bytes.

        A twentieth of ``max_elements`` where quantizing searches a grid.
        """
        limit = max_elements // SEARCH_SHARE if self.op == "quantize" and self.type in SEARCHED else max_elements
        n = max(1, min(self.rows, limit // self.cols))
        draws = Draws(self.seed)
        probe = NumberProbe(self.op, self.type, self.cols, variant=self.variant, label=self.label)
        if self.op == "quantize":
            imatrix = None if self.imatrix is None else make_imatrix(self.imatrix, self.cols, draws)
            return probe._replace(rows=self._floats(n, draws), imatrix=imatrix)
        blocks = make_blocks(self.blocks, self.type, n, self.cols, draws)
        if self.op == "dequantize":
            return probe._replace(blocks=blocks)
        return probe._replace(blocks=blocks, x=self._floats(1 if self.one_x or self.op == "matvec" else n, draws))

    def _floats(self, n: int, draws: Draws) -> Floats:
        recipe = self.row or RowRecipe("bell")
        # The levels of a product's x are those of the type that it is quantized to, to 8 bits.
        kind = self.type if self.op == "quantize" or BY_NAME[self.type].block == 1 else "Q8_0"
        return make_rows(recipe, kind, n, self.cols, draws)
