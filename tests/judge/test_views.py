"""A sound reader whose interface shows less, and says so, passes all container cases; one that says nothing does not."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from conformance.cases.build import build
from conformance.cases.model import Case, FileInput
from conformance.judge.golden import GoldenStore
from conformance.judge.headers import LONG_ARRAY
from conformance.judge.measure import Given, Measure, differences
from conformance.judge.verdict import is_determined
from conformance.outcomes import Ok
from conformance.places import cases_root
from conformance.run.participants import golden_measure
from conformance.subjects.answers import MOST_LEVELS
from conformance.subjects.protocol import Hidden, View
from conformance.values import Boxed, Element, Header, HexText, Pair, TensorInfo, Text, Value
from impl.errors import GgufError
from impl.subject import Subject
from tests.corpus import corpus

CASES = [case for case in corpus() if case.suite.startswith("container/") and isinstance(case.input, FileInput)]
STORE = GoldenStore(cases_root() / "golden")
Strings = Callable[[bytes], bytes]


def _text(text: Text | Boxed, change: Strings) -> str | HexText:
    raw = text.encode() if isinstance(text, str) else bytes.fromhex(text.hex or "")
    changed = change(raw)
    try:
        return changed.decode()
    except UnicodeDecodeError:
        return HexText(changed.hex())


def _element(kind: str, element: Element, change: Strings, number: Callable[[str], str]) -> Element:
    if kind == "str":
        text = _text(element, change)
        return text if isinstance(text, str) else Boxed(hex=text.hex)
    if isinstance(element, Boxed):
        inner = [_element(element.items or "", part, change, number) for part in element.value or []]
        return msgspec.structs.replace(element, value=inner)
    return number(element) if kind in {"u64", "i64"} else element


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """How a binding shows what its reader found; ``view`` is what it has to declare."""

    strings: str = "bytes"
    doubles: bool = False
    ne: bool = False
    unordered: bool = False
    no_offset: bool = False
    no_items: bool = False
    untyped: bool = False
    hides: tuple[str, ...] = ()

    @property
    def view(self) -> View:
        return View(
            strings=self.strings,  # type: ignore[arg-type]  # one of the three, see INTERFACES
            integers="double" if self.doubles else "exact",
            dims="ne" if self.ne else "exact",
            ordered=not self.unordered,
            data_offset="tensors" if self.no_offset else "always",
            types="lost" if self.untyped else "exact",
            hides=self.hides,  # type: ignore[arg-type]  # names of fields, see INTERFACES
        )

    def _change(self, raw: bytes) -> bytes:
        if self.strings == "c":
            return raw.split(b"\0")[0]
        return raw.decode(errors="replace").encode() if self.strings == "lossy" else raw

    def _number(self, text: str) -> str:
        return f"{float(text):.0f}" if self.doubles else text

    def _pair(self, pair: Pair) -> Pair:
        if isinstance(pair.value, list):
            inner = Boxed(items=pair.items, value=pair.value)
            # What gguf-py's own answer does not tell the type of stays as it is.
            shown = self._untyped(inner) if self.untyped and inner.items else inner
            value: Value = [_element(shown.items or "", one, self._change, self._number) for one in shown.value or []]
            return Pair(_text(pair.key, self._change), "array", value, None if self.no_items else shown.items)
        kind, element = self._plain(pair.type, pair.value) if self.untyped else (pair.type, pair.value)
        return Pair(_text(pair.key, self._change), kind, _element(kind, element, self._change, self._number))

    def _untyped(self, array: Boxed) -> Boxed:
        """Give an array as a language with one type of numbers, or with integers and doubles, holds it."""
        elements, items = array.value or [], array.items or ""
        if items == "array":
            return Boxed(items=items, value=[self._untyped(one) for one in elements if isinstance(one, Boxed)])
        plain = [self._plain(items, one) for one in elements]
        kinds = {kind for kind, _ in plain}
        if kinds == {"u64", "i64"}:
            kinds = {"i64"}
        return Boxed(items=kinds.pop() if kinds else None, value=[one for _, one in plain])

    def _plain(self, kind: str, element: Element) -> tuple[str, Element]:
        if kind in {"str", "bool"}:
            return kind, element
        assert isinstance(element, str)
        if kind in {"f32", "f64"} or self.doubles:
            form = {"f32": ">f", "f64": ">d"}.get(kind)
            number = struct.unpack(form, bytes.fromhex(element[2:]))[0] if form else float(element)
            return "f64", f"0x{struct.pack('>d', number).hex()}"
        return "i64" if element.startswith("-") else "u64", element

    def _tensor(self, tensor: TensorInfo) -> TensorInfo:
        dims = [*tensor.dims, "1", "1", "1", "1"][: max(4, len(tensor.dims))] if self.ne else tensor.dims
        name, number = _text(tensor.name, self._change), self._number
        kind = 77 if "type" in self.hides else tensor.type
        offset = "77" if "offset" in self.hides else tensor.offset
        nbytes = "77" if "nbytes" in self.hides else tensor.nbytes
        return TensorInfo(name, kind, [number(dim) for dim in dims], number(offset), number(nbytes or "0"))

    def show(self, header: Header) -> Header:
        pairs = [self._pair(pair) for pair in header.kv]
        tensors = [self._tensor(tensor) for tensor in header.tensors]
        offset = 7777 if self.no_offset and not tensors else header.data_offset
        turn = -1 if self.unordered else 1
        told = {"version": header.version, "alignment": header.alignment, "data_offset": offset}
        told.update({name: 7777 for name in self.hides if name in told})
        return Header(**told, kv=pairs[::turn], tensors=tensors[::turn])


HIDDEN = get_args(Hidden)
INTERFACES = [
    Interface(strings=strings, doubles=doubles, ne=ne, unordered=unordered, no_offset=no_offset, no_items=no_items)
    for strings in ("bytes", "c", "lossy")
    for doubles, ne, unordered, no_offset, no_items in product([False, True], repeat=5)
]
INTERFACES += [
    Interface(strings=strings, doubles=doubles, unordered=unordered, untyped=untyped, hides=hides)
    for strings, (doubles, unordered) in product(("bytes", "lossy"), product([False, True], repeat=2))
    for untyped, hides in [(True, ()), (False, HIDDEN), (True, HIDDEN)]
]


def _traits(interface: Interface) -> int:
    return sum(getattr(interface, name) != getattr(Interface(), name) for name in Interface.__struct_fields__)


# The whole corpus is shown by these: each trait alone, each two together, and all. The test of one header takes the others too.
MOST = max(map(_traits, INTERFACES))
PAIRS = [interface for interface in INTERFACES if _traits(interface) <= 2 or _traits(interface) == MOST]


def _read(case: Case, folder: Path) -> Header | None:
    """Give what the reference reads of a case's file."""
    assert isinstance(case.input, FileInput)
    path = folder / "case.gguf"
    path.write_bytes(build(case.input.recipe).data)
    try:
        return msgspec.convert(Subject().header({"path": str(path)}), Header)
    except GgufError:
        return None


@cache
def _accepted(authority: str, folder: Path) -> list[tuple[str, Measure, Header]]:
    """Give id, recorded answer and the whole header of each case whose header the authority accepts.

    The whole header is the reference's where it is judged by that authority; else the recorded one, if nothing is left out.
    """

    def found() -> Iterator[tuple[str, Measure, Header]]:
        for case in CASES:
            measure = golden_measure(STORE, case, authority, "header")
            if measure is None or not isinstance(measure.outcome, Ok) or not is_determined(case.expect[authority]["header"]):
                continue
            if case.expect[authority]["header"][0].kind != "accept":
                continue
            header = _read(case, folder) if authority == "llama.cpp" else None if measure.arrays else measure.outcome.header
            if header is not None:
                yield case.id, measure, header

    return list(found())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("views")


@pytest.mark.parametrize("authority", ["llama.cpp", "gguf-py"])
@pytest.mark.parametrize("interface", PAIRS, ids=repr)
def test_a_declared_interface_passes_every_container_case(authority: str, interface: Interface, folder: Path) -> None:
    accepted = _accepted(authority, folder)
    assert len(accepted) > 100
    wrong = []
    for name, recorded, header in accepted:
        given = Given(Ok(interface.show(header)), interface.view)
        live = Measure(authority, Ok(header), recorded.view)
        # What the authority's own interface hides, its live answer does not have either.
        for measure in (recorded, live):
            wrong += [(name, d.summary) for d in differences("header", "-", measure, given, None)]
    assert wrong == []


@pytest.mark.parametrize(
    "interface",
    [
        Interface(strings="lossy"),
        Interface(doubles=True),
        Interface(unordered=True),
        Interface(no_offset=True),
        Interface(untyped=True),
    ]
    + [Interface(hides=(name,)) for name in HIDDEN],
    ids=repr,
)
def test_an_interface_that_is_not_declared_fails(interface: Interface, folder: Path) -> None:
    given = ((measure, Given(Ok(interface.show(header)))) for _, measure, header in _accepted("llama.cpp", folder))
    assert any(differences("header", "-", measure, one, None) for measure, one in given)


@pytest.mark.parametrize("interface", INTERFACES, ids=repr)
def test_what_an_interface_shows_is_judged(interface: Interface) -> None:
    """A view hides what it names and no more."""
    long: list[Element] = [str(number) for number in range(10 * LONG_ARRAY)]
    pairs = [
        Pair("a", "u32", "7"),
        Pair("b\0x", "str", "text\0rest"),
        Pair("c", "u64", "12345"),
        Pair("d", "array", list(long), "i64"),
        Pair("e", "array", [Boxed(items="str", value=["in\0side"])], "array"),
        Pair("f", "f32", "0xc0200000"),
        Pair("g", "array", [Boxed(items="f64", value=["0x8000000000000000"]), Boxed(items="i8", value=["-7"])], "array"),
    ]
    tensors = [TensorInfo("t", 0, ["4", "1"], "0", "16"), TensorInfo("u", 0, ["4", "2", "1"], "32", "32")]
    header = Header(3, 32, 640, pairs, tensors)
    wrong = [
        (0, Pair("a", "u32", "8")),
        (0, Pair("A", "u32", "7")),
        (1, Pair("b\0x", "str", "tex\0rest")),
        (2, Pair("c", "u64", "12346")),
        (3, Pair("d", "array", [*long[:-1], "0"], "i64")),
        (3, Pair("d", "array", long[:-1], "i64")),
        (4, Pair("e", "array", [Boxed(items="str", value=["on\0side"])], "array")),
        (5, Pair("f", "f32", "0xc0200001")),
        (5, Pair("f", "str", "-2.5")),
        (6, Pair("g", "array", [Boxed(items="f64", value=["0x0000000000000000"]), Boxed(items="i8", value=["-7"])], "array")),
        (6, Pair("g", "array", [Boxed(items="f64", value=["0x8000000000000000"]), Boxed(items="str", value=["-7"])], "array")),
    ]
    if not interface.untyped:
        wrong.append((0, Pair("a", "i32", "7")))
    measure = Measure("llama.cpp", Ok(header))
    assert differences("header", "-", measure, Given(Ok(interface.show(header)), interface.view), None) == []
    for index, pair in wrong:
        changed = msgspec.structs.replace(header, kv=[pair if i == index else other for i, other in enumerate(pairs)])
        assert differences("header", "-", measure, Given(Ok(interface.show(changed)), interface.view), None), pair
    for tensor in (
        TensorInfo("t", 0, ["4", "2"], "0", "16"),
        TensorInfo("t", 0, ["4"], "32", "16"),
        TensorInfo("v", 0, ["4"], "0", "16"),
    ):
        changed = msgspec.structs.replace(header, tensors=[tensor, tensors[1]])
        assert differences("header", "-", measure, Given(Ok(interface.show(changed)), interface.view), None), tensor


def test_the_deepest_answer_is_compared() -> None:
    def header(levels: int, number: str) -> Header:
        element = Boxed(items="u64", value=[number])
        for _ in range(levels - 2):
            element = Boxed(items="array", value=[element])
        return Header(3, 32, 64, [Pair("a", "array", [element], "array")], [])

    view = View(types="lost", integers="double", strings="lossy")
    measure = Measure("llama.cpp", Ok(header(MOST_LEVELS, "7")))
    assert differences("header", "-", measure, Given(Ok(header(MOST_LEVELS, "7")), view), None) == []
    assert differences("header", "-", measure, Given(Ok(header(MOST_LEVELS, "8")), view), None)


def test_bytes_that_are_not_utf8_are_the_same_bytes_in_any_array() -> None:
    """JSON may write them as a lone surrogate, in an array whose other strings show whole."""

    def header(element: str | Boxed) -> Header:
        return Header(3, 32, 64, [Pair("a", "array", ["whole", element], "str")], [])

    measure = Measure("llama.cpp", Ok(header(Boxed(hex="eda080"))))
    for strings in ("c", "lossy"):
        view = View(strings=strings)  # type: ignore[arg-type]  # one of the two
        assert differences("header", "-", measure, Given(Ok(header("\ud800")), view), None) == []
