"""Comparison of headers: each kind of difference has its path; what an interface cannot show is not judged."""

from itertools import permutations

import msgspec
import pytest

from conformance.judge.golden import record_answer
from conformance.judge.headers import LONG_ARRAY, general_path, header_differences, limits, show
from conformance.judge.measure import Given, Measure, differences
from conformance.judge.view import reduce_header
from conformance.outcomes import Ok
from conformance.subjects.protocol import View
from conformance.values import Boxed, Element, Header, HexText, Pair, TensorInfo

BASE = Header(
    3,
    32,
    128,
    [Pair("a", "u32", "7"), Pair("b", "array", ["1", "2"], "u8"), Pair("c", "str", "x")],
    [TensorInfo("t", 8, ["32", "2"], "0", "68")],
)


def _with_pair(index: int, **changes: object) -> Header:
    pairs = list(BASE.kv)
    pairs[index] = msgspec.structs.replace(pairs[index], **changes)
    return msgspec.structs.replace(BASE, kv=pairs)


def _with_tensor(**changes: object) -> Header:
    return msgspec.structs.replace(BASE, tensors=[msgspec.structs.replace(BASE.tensors[0], **changes)])


@pytest.mark.parametrize(
    ("found", "paths"),
    [
        (BASE, []),
        (msgspec.structs.replace(BASE, version=2, data_offset=96), ["version", "data_offset"]),
        (_with_pair(0, value="8"), ["kv[0].value"]),
        (_with_pair(0, type="i32"), ["kv[0].type"]),
        (_with_pair(0, key="A"), ["kv[0].key"]),
        (_with_pair(1, value=["1", "3"]), ["kv[1].value[1]"]),
        (_with_pair(1, value=["1"]), ["kv[1].value.length", "kv[1].value[1]"]),
        (_with_pair(1, items="i8"), ["kv[1].value.items"]),
        (_with_pair(1, items=None), []),
        (msgspec.structs.replace(BASE, kv=BASE.kv[:2]), ["n_kv"]),
        (msgspec.structs.replace(BASE, tensors=[]), ["n_tensors"]),
        (_with_tensor(dims=["2", "32"]), ["tensors[0].dims"]),
        (_with_tensor(type=7, nbytes="48"), ["tensors[0].type", "tensors[0].nbytes"]),
    ],
)
def test_differences_have_their_paths(found: Header, paths: list[str]) -> None:
    assert [difference.path for difference in header_differences(BASE, found)] == paths


def test_paths_lose_their_indices_in_signatures() -> None:
    assert general_path("kv[3].value[17].length") == "kv[*].value[*].length"


def _pair_header(pair: Pair) -> Header:
    return Header(3, 32, 0, [pair], [])


@pytest.mark.parametrize(
    ("view", "ours", "theirs"),
    [
        (View(strings="c"), Pair("k\0x", "str", "a\0b"), Pair("k", "str", "a")),
        (View(strings="c"), Pair("k", "array", ["a\0b"], "str"), Pair("k", "array", ["a"], "str")),
        (View(strings="lossy"), Pair(HexText("ff41"), "str", Boxed(hex="ff")), Pair("\ufffdA", "str", "\ufffd")),
        (View(integers="double"), Pair("k", "u64", "9007199254740993"), Pair("k", "u64", "9007199254740992")),
    ],
)
def test_a_view_hides_just_what_it_says(view: View, ours: Pair, theirs: Pair) -> None:
    left, right = _pair_header(ours), _pair_header(theirs)
    assert list(header_differences(left, right))
    assert not list(header_differences(reduce_header(left, view).header, reduce_header(right, view).header))
    assert limits(view)


def test_dims_of_one_at_the_end_do_not_show_through_ne() -> None:
    padded = _with_tensor(dims=["32", "2", "1", "1"])
    assert list(header_differences(BASE, padded))
    view = View(dims="ne")
    assert not list(header_differences(reduce_header(BASE, view).header, reduce_header(padded, view).header))


def test_a_file_without_tensors_may_have_no_data_offset() -> None:
    view = View(data_offset="tensors")
    empty, padded = (Header(3, 32, offset, [], []) for offset in (57, 64))
    assert list(header_differences(empty, padded))
    assert not list(header_differences(reduce_header(empty, view).header, reduce_header(padded, view).header))
    moved = msgspec.structs.replace(BASE, data_offset=160)
    assert list(header_differences(reduce_header(BASE, view).header, reduce_header(moved, view).header))


def test_a_size_that_a_reader_leaves_out_is_not_judged() -> None:
    assert not list(header_differences(BASE, _with_tensor(nbytes=None)))


def test_order_is_not_judged_where_it_does_not_show() -> None:
    turned = msgspec.structs.replace(BASE, kv=BASE.kv[::-1])
    view = View(ordered=False)
    assert list(header_differences(BASE, turned))
    assert not list(header_differences(reduce_header(BASE, view).header, reduce_header(turned, view).header))


def _long(changed: int | None = None) -> Header:
    values = [str(number) for number in range(40 * LONG_ARRAY)]
    if changed is not None:
        values[changed] = "x"
    return _pair_header(Pair("tokens", "array", list(values), "str"))


def _recorded(view: View = View()) -> Measure:  # noqa: B008 - frozen
    answer = record_answer(Ok(_long()), None)
    return Measure("llama.cpp", answer.outcome, view, None, answer.arrays)


def test_a_long_array_is_held_to_its_digests() -> None:
    assert differences("header", "-", _recorded(), Given(Ok(_long())), None) == []
    (divergence,) = differences("header", "-", _recorded(), Given(Ok(_long(1500))), None)
    assert divergence.signature == "header:-:digest:kv[*].value[*]"
    assert divergence.field == "kv[0].value[1024]"


def test_digests_that_a_coarser_view_does_not_touch_are_compared() -> None:
    assert differences("header", "-", _recorded(), Given(Ok(_long(1500)), View(integers="double")), None)
    assert not differences("header", "-", _recorded(), Given(Ok(_long()), View(integers="double")), None)


def test_digests_follow_their_pairs_where_order_does_not_show() -> None:
    pairs = [Pair("z", "array", [str(n) for n in range(2000)], "u32"), Pair("a", "u32", "7"), Pair("m", "u32", "8")]
    answer = record_answer(Ok(Header(3, 32, 0, pairs, [])), None)
    measure = Measure("llama.cpp", answer.outcome, View(), None, answer.arrays)
    turned = Ok(Header(3, 32, 0, [pairs[2], pairs[0], pairs[1]], []))
    assert differences("header", "-", measure, Given(turned, View(ordered=False)), None) == []
    wrong = [msgspec.structs.replace(pairs[0], value=["x"] * 2000), *pairs[1:]]
    assert differences("header", "-", measure, Given(Ok(Header(3, 32, 0, wrong, [])), View(ordered=False)), None)


@pytest.mark.parametrize("wrong", [None, 1500])
def test_digests_of_what_a_subject_cannot_show_are_not_compared(wrong: int | None) -> None:
    """Of a C string nobody knows what came after it; of a text without a replacement character it is known that it is whole."""
    assert differences("header", "-", _recorded(), Given(Ok(_long(wrong)), View(strings="c")), None) == []
    assert bool(differences("header", "-", _recorded(), Given(Ok(_long(wrong)), View(strings="lossy")), None)) is bool(wrong)
    other = _pair_header(Pair("other", "array", _long().kv[0].value, "str"))
    (divergence,) = differences("header", "-", _recorded(), Given(Ok(other), View(strings="c")), None)
    assert divergence.field == "kv[0].key"
    short = _pair_header(Pair("tokens", "array", ["1"], "str"))
    (divergence,) = differences("header", "-", _recorded(), Given(Ok(short), View(strings="c")), None)
    assert (divergence.field, divergence.expected, divergence.found) == ("kv[0].value.length", str(40 * LONG_ARRAY), "1")


@pytest.mark.parametrize(
    ("view", "kind", "hidden"),
    [(View(strings="lossy"), "str", "\ufffd"), (View(integers="double"), "u64", str(2**53))],
)
def test_a_range_is_compared_unless_an_element_of_it_may_hide_something(view: View, kind: str, hidden: str) -> None:
    values: list[Element] = [str(number) for number in range(3000)]
    values[10] = Boxed(hex="ff") if kind == "str" else str(2**53 + 1)
    answer = record_answer(Ok(_pair_header(Pair("k", "array", list(values), kind))), None)
    measure = Measure("llama.cpp", answer.outcome, View(), None, answer.arrays)
    found: list[Element] = [hidden if number == 10 else value for number, value in enumerate(values)]
    given = Given(Ok(_pair_header(Pair("k", "array", found, kind))), view)
    assert differences("header", "-", measure, given, None) == []
    found[11] = "7"
    assert differences("header", "-", measure, given, None) == []
    found[2000] = "7"
    (divergence,) = differences("header", "-", measure, given, None)
    assert (divergence.field, divergence.different, divergence.unit) == ("kv[0].value[1024]", 1, "ranges of 1024 elements")


def test_what_differs_is_counted() -> None:
    right = Measure("llama.cpp", Ok(_long()))
    values: list[Element] = [str(number) for number in range(40 * LONG_ARRAY)]
    for index in (7, 1500, 1501):
        values[index] = "x"
    wrong = _pair_header(Pair("tokens", "array", values, "str"))
    (divergence,) = differences("header", "-", right, Given(Ok(wrong)), None)
    assert (divergence.field, divergence.different, divergence.unit) == ("kv[0].value[7]", 3, "elements")
    (divergence,) = differences("header", "-", _recorded(), Given(Ok(wrong)), None)
    assert (divergence.field, divergence.different, divergence.unit) == ("kv[0].value[0]", 2, "ranges of 1024 elements")
    pairs = [msgspec.structs.replace(pair, key=f"{pair.key}x") for pair in BASE.kv]
    (divergence,) = differences(
        "header", "-", Measure("llama.cpp", Ok(BASE)), Given(Ok(msgspec.structs.replace(BASE, kv=pairs))), None
    )
    assert (divergence.field, divergence.different, divergence.unit) == ("kv[0].key", 3, "fields")


def test_a_long_array_finds_its_like_among_keys_that_one_cannot_tell_apart() -> None:
    """The recorded one's elements are left out: it must not sort by them."""
    long: list[Element] = [str(number) for number in range(9 * LONG_ARRAY)]
    pairs = [Pair("k\0a", "array", long, "u32"), Pair("k\0b", "array", ["5"], "u32"), Pair("k\0c", "array", [], "u32")]
    shown = [msgspec.structs.replace(pair, key="k") for pair in pairs]
    answer = record_answer(Ok(Header(3, 32, 0, shown, [])), None)
    recorded = Measure("llama.cpp", answer.outcome, View(strings="c"), None, answer.arrays)
    live = Measure("llama.cpp", Ok(Header(3, 32, 0, shown, [])), View(strings="c"))
    for turned in permutations(pairs):
        for measure in (recorded, live):
            given = Given(Ok(Header(3, 32, 0, list(turned), [])), View(ordered=False))
            assert differences("header", "-", measure, given, None) == []


@pytest.mark.parametrize(("value", "shown"), [("a b", "a b"), (" ", '" "'), ("", '""'), ("a\n", '"a\\n"'), (["1"], '["1"]')])
def test_blanks_are_seen(value: object, shown: str) -> None:
    assert show(value) == shown


def test_all_that_an_interface_does_not_show_is_told() -> None:
    hides = View(strings="c", dims="ne", types="lost", hides=("version", "offset"))
    assert limits(hides) == (
        "strings end at their first NUL",
        "trailing dimensions of 1 do not show",
        "values come without their types; numbers are compared as numbers",
        "not shown at all: version, offset",
    )
    assert limits(View()) == ()
