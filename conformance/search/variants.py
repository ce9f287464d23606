"""Many odd and broken forms of one file, fast: built once, then changed in place where its fields stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.cases.build import build
from conformance.search.file_draws import Draw, Seeded
from conformance.search.file_faults import Edit, Fault, cut, field_fault, flipped, grown, patches, places, scrambled, wrapping
from conformance.search.file_fields import AFTERWARDS, Anatomy, anatomy, claimed
from conformance.search.file_forms import form
from conformance.search.probe import FileOp, FileProbe

# Who claims more than this is asked for its header: to load it, ggml allocates first and aborts where it cannot.
MUCH_DATA = 2**28
# One in so many of those is asked to load it all the same.
_RARELY = 64
# One in so many variants changes what is there, not what is written of it, and is built anew: as long as a hundred others.
_BUILT = 64
_TRIES = 20
# The label of two faults at once: what they show is mostly what one of them shows, and each pair of labels would be one more.
TWO = "two faults"

_Maker = Callable[[Draw, Anatomy], Fault | None]
_MAKERS: tuple[_Maker, ...] = (
    *(field_fault,) * 10,
    *(places, places, wrapping, flipped, flipped, scrambled, cut, cut, grown),
)


class FaultyRecipe(Mapping[str, Any]):
    """The recipe of a sound file with a fault; its patches are only written out when somebody reads them."""

    __slots__ = ("_fault", "_made", "_taken")

    def __init__(self, taken: Anatomy, fault: Fault) -> None:
        self._taken, self._fault = taken, fault
        self._made: dict[str, Any] | None = None

    def plain(self) -> dict[str, Any]:
        """Give it as an ordinary mapping."""
        if self._made is None:
            self._made = faulty(self._taken, self._fault)
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self.plain()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())

    def __repr__(self) -> str:
        return repr(self.plain())

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (self.plain(),)


def variants(recipe: Mapping[str, Any], seed: int, count: int) -> Iterator[FileProbe]:
    """Give the file of ``recipe`` and then ``count`` odd or broken forms of it, the same ones for the same seed.

    What the recipe itself cuts or appends holds for the first only: the others start from the whole file. Raises
    ConfigurationError where the recipe does not build.
    """
    draw, taken = Seeded(seed), anatomy(recipe)
    whole = not recipe.keys() & AFTERWARDS
    yield FileProbe(_op(draw), taken.data if whole else build(recipe).data, recipe, "valid")
    for number in range(1, count + 1):
        yield _built(draw, taken) if number % _BUILT == 0 else _variant(draw, taken)


def _variant(draw: Draw, taken: Anatomy) -> FileProbe:
    fault = drawn_fault(draw, taken)
    data = changed(taken, fault)
    return FileProbe(_op_for(draw, taken, fault), data, FaultyRecipe(taken, fault), fault.label)


def _built(draw: Draw, taken: Anatomy) -> FileProbe:
    label, recipe = form(draw, taken.recipe)
    return FileProbe("header" if draw.below(2) else "load", build(recipe).data, recipe, label)


def drawn_fault(draw: Draw, taken: Anatomy) -> Fault:
    """Give a fault, now and then two at once, that changes the file: after some tries, one byte more behind it."""
    for _ in range(_TRIES):
        fault = _one(draw, taken)
        if draw.below(10) == 9:
            fault = both(fault, _one(draw, taken))
        if fault.append or fault.cut is not None or any(edit.raw != edit.site.before for edit in fault.edits):
            return fault
    return Fault("appended", append=b"\0")


def _one(draw: Draw, taken: Anatomy) -> Fault:
    maker = _MAKERS[draw.below(len(_MAKERS))]
    return maker(draw, taken) or field_fault(draw, taken)


def both(one: Fault, other: Fault) -> Fault:
    """Give both faults at once; only the first where they change the same field."""
    paths = {edit.site.path for edit in one.edits}
    if any(edit.site.path in paths for edit in other.edits):
        return one
    cut_to = one.cut if one.cut is not None else other.cut
    return Fault(TWO, one.edits + other.edits, cut_to, one.append or other.append)


def changed(taken: Anatomy, fault: Fault) -> bytes:
    """Give the file's bytes with the fault in them."""
    data = taken.data
    for site, raw in fault.edits:
        data = data[: site.offset] + raw + data[site.end :]
    if fault.cut is not None:
        data = data[: fault.cut]
    return data + fault.append


def faulty(taken: Anatomy, fault: Fault) -> dict[str, Any]:
    """Give the recipe that builds exactly the bytes of ``changed``."""
    recipe = dict(taken.recipe)
    if "bytes" in recipe:
        return {"bytes": changed(taken, fault).hex()}
    if fault.edits:
        recipe["patch"] = {**recipe.get("patch", {}), **patches(fault.edits, taken)}
    if fault.cut is not None:
        recipe["cut"] = fault.cut
    if fault.append:
        recipe["append"] = fault.append.hex()
    return recipe


def _op(draw: Draw) -> FileOp:
    return "load" if draw.below(2) else "header"


def _op_for(draw: Draw, taken: Anatomy, fault: Fault) -> FileOp:
    op = _op(draw)
    if op == "load" and any(map(_of_shape, fault.edits)) and claimed(taken, changed(taken, Fault("", fault.edits))) > MUCH_DATA:
        return "load" if draw.below(_RARELY) == _RARELY - 1 else "header"
    return op


def _of_shape(edit: Edit) -> bool:
    return edit.site.general.startswith("tensors[*].dims")
