"""Looking at every block of a file: what is counted is what was put there, and a row is refused where the library refuses it."""

from __future__ import annotations

import ctypes
import io
import json
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import impl
from conformance import commands
from conformance.errors import AuthorityMissingError
from conformance.ggml_types import BY_ID, BY_NAME
from conformance.scan import COUNTED, Scan, TensorScan, scan
from conformance.subjects.authorities.llama_cpp.library import libraries
from tests.test_cli import command, invoke
from tests.test_inspect import HOSTILE, gguf, q8_0

ZEROS, ONES = [0] * 32, list(range(32))
STEP = 2.0**-24  # the distance of subnormal float16 numbers
ALL_TYPES = [kind.name for kind in BY_ID.values() if not kind.removed]
# Types that the library quantizes to without setting up grids, which takes it seconds. (The four-bit floats choose their codes for
# the scale as it is stored: where it is 0, so are they, and nothing shows.)
QUICK = [name for name in ALL_TYPES if name[0] in "QT" and name not in ("Q8_1", "Q8_K")] + ["IQ4_NL", "IQ4_XS"]


def _write(path: Path, *tensors: tuple[bytes, str, tuple[int, ...], bytes]) -> Path:
    path.write_bytes(gguf([], [(name, BY_NAME[kind].id, dims, raw) for name, kind, dims, raw in tensors]))
    return path


def _one(path: Path, kind: str, dims: tuple[int, ...], raw: bytes) -> TensorScan:
    (tensor,) = scan(_write(path, (b"t", kind, dims, raw))).tensors
    return tensor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.gguf"


@pytest.fixture(scope="session")
def base() -> ctypes.CDLL:
    try:
        library = libraries().base
    except AuthorityMissingError as missing:
        pytest.skip(f"needs the live library: {missing.message}")
    library.ggml_validate_row_data.restype = ctypes.c_bool
    return library


def _accepted(base: ctypes.CDLL, kind: str, row: npt.NDArray[np.uint8]) -> bool:
    row = np.ascontiguousarray(row)
    return bool(base.ggml_validate_row_data(BY_NAME[kind].id, ctypes.c_void_p(row.ctypes.data), ctypes.c_size_t(row.size)))


Q8_0_BLOCKS = [
    q8_0(1.0, ONES), q8_0(0.0, ZEROS), q8_0(-0.0, ONES), q8_0(1000 * STEP, ONES),
    q8_0(50 * STEP, ONES), q8_0(49 * STEP, ONES), q8_0(-STEP, ONES), q8_0(2.0**-14, ONES),
    q8_0(float("inf"), ONES), q8_0(float("nan"), ONES), q8_0(65504.0, ONES), q8_0(0.0, [7] * 32),
]  # fmt: skip


@pytest.mark.parametrize("piece", [1, 34, 70, 4 << 20])
def test_each_kind_of_block_is_counted_whatever_the_pieces(path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("conformance.scan.PIECE_BYTES", piece)
    found = _one(path, "Q8_0", (128, 3), b"".join(Q8_0_BLOCKS))
    (d,) = found.scales
    assert (d.field, *(getattr(d, name) for name in COUNTED)) == ("d", 3, 4, 1, 1)
    assert (found.rows, found.blocks, found.zero_blocks, found.lost_blocks, found.coarse_blocks) == (3, 12, 3, 1, 2)
    assert (found.refused_rows, found.first) == (1, "row 2, block 0: d is infinite (0x7c00 as f16)")
    assert found.found


def test_a_row_in_several_pieces_is_refused_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.scan.PIECE_BYTES", 68)
    bad, good = q8_0(float("nan"), ONES), q8_0(1.0, ONES)
    found = _one(path, "Q8_0", (32 * 5, 3), b"".join([bad] * 5 + [good] * 5 + [good, bad, good, good, bad]))
    assert (found.refused_rows, found.scales[0].nan) == (2, 7)
    assert found.first == "row 0, block 0: d is NaN (0x7e00 as f16)"


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("damaged", [False, True])
def test_rows_are_refused_where_the_library_refuses_them(
    base: ctypes.CDLL, path: Path, capfd: pytest.CaptureFixture[str], kind: str, damaged: bool
) -> None:
    """Random bytes; and bytes that no scale of which is infinite, but in every third row one block all ones."""
    rng = np.random.default_rng(41)
    block, rows = BY_NAME[kind], 120
    raw = rng.integers(0, 0x78 if damaged else 256, (rows, 2, block.nbytes), dtype=np.uint8)
    if damaged:
        raw[::3, 1] = 0xFF
    found = _one(path, kind, (2 * block.block, rows), raw.tobytes())
    assert found.refused_rows == sum(not _accepted(base, kind, row) for row in raw)
    capfd.readouterr()  # the library tells each refusal on stderr


def _floats(kind: str, *values: float) -> bytes:
    if kind == "BF16":
        return (np.array(values, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return np.array(values, {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[kind]).tobytes()


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "F64"])
def test_values_that_are_no_numbers(path: Path, kind: str) -> None:
    inf, nan = float("inf"), float("nan")
    found = _one(path, kind, (4, 3), _floats(kind, 0, 1, -1, 2, 3, -inf, nan, inf, 0.5, 1e-7, 0, nan))
    (value,) = found.scales
    assert (value.infinite, value.nan, found.refused_rows, found.blocks) == (2, 2, 2, 12)
    assert found.first.startswith("row 1, element 1: value is -infinite (0x")
    assert (found.lost_blocks, found.coarse_blocks, found.found) == (0, 0, True)


def test_float64_beyond_float32_is_infinite_to_ggml(path: Path) -> None:
    found = _one(path, "F64", (3,), _floats("F64", 1.0, 1e300, 3e38))
    assert (found.scales[0].infinite, found.refused_rows) == (1, 1)


@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_single_zeros_among_values_are_nothing_to_look_at_and_a_tensor_of_them_is(path: Path, kind: str) -> None:
    some = _one(path, kind, (4,), _floats(kind, 0, 1, 0, 0))
    none = _one(path, kind, (4,), _floats(kind, 0, -0.0, 0, 0))
    assert (some.remarkable, some.zero_blocks, some.found) == (False, 3, False)
    assert (none.remarkable, none.zero_blocks, none.found) == (True, 4, False)


def test_integers_have_nothing_that_could_be_wrong(path: Path) -> None:
    found = _one(path, "I32", (4,), bytes(16))
    assert (found.scales, found.remarkable, found.refused_rows, found.blocks) == ((), False, 0, 4)


def test_a_nan_scale_of_nvfp4_is_found_although_ggml_accepts_it(path: Path) -> None:
    blocks = bytes([0x38, 0x7F, 0x38, 0x38]) + bytes(range(32)) + bytes([0x38] * 4) + bytes(range(32))
    found = _one(path, "NVFP4", (128,), blocks)
    assert (found.scales[0].nan, found.refused_rows, found.found) == (1, 0, True)


def test_the_exponent_255_of_mxfp4_is_nan_and_0_is_no_zero(path: Path) -> None:
    found = _one(path, "MXFP4", (96,), b"".join(bytes([e]) + bytes(range(16)) for e in (255, 0, 1)))
    (e,) = found.scales
    assert (e.nan, e.zero, e.subnormal, e.infinite, found.zero_blocks, found.refused_rows) == (1, 0, 0, 0, 0, 1)


@pytest.mark.parametrize(("steps", "minimum", "coarse"), [(49, 0.0, 1), (49, 0.5, 0), (50, 0.0, 0), (0, 30 * STEP, 0)])
def test_a_minimum_that_outweighs_it_makes_a_coarse_scale_harmless(path: Path, steps: int, minimum: float, coarse: int) -> None:
    found = _one(path, "Q4_1", (32,), struct.pack("<ee16s", steps * STEP, minimum, bytes(range(16))))
    assert (found.coarse_blocks, found.found) == (coarse, bool(coarse))


@pytest.mark.parametrize(("kind", "at", "limit"), [("Q6_K", 208, 16), ("Q4_K", 0, 8), ("Q3_K", 108, 2)])
def test_the_finer_the_codes_the_larger_must_a_scale_be(path: Path, kind: str, at: int, limit: int) -> None:
    """Below half a step over the tolerance of impl.check: 1/32, 1/15, 1/4."""
    block = np.full(BY_NAME[kind].nbytes, 0x11, np.uint8)
    for steps, coarse in ((limit - 1, 1), (limit, 0)):
        block[at : at + 2] = [steps, 0]
        if kind == "Q4_K":
            block[2:4] = [3, 0]
        assert _one(path, kind, (256,), block.tobytes()).coarse_blocks == coarse


@pytest.mark.parametrize("kind", QUICK)
def test_zeros_are_no_loss_and_numbers_too_small_are(base: ctypes.CDLL, path: Path, kind: str) -> None:
    """As the library quantizes them: a block of zeros after one that is not, then two of numbers whose scale becomes 0."""
    rng = np.random.default_rng(43)
    block = BY_NAME[kind].block
    sizes = np.array([[1.0], [0.0], [1e-9], [1e-10]])
    x = (rng.standard_normal((4, block)) * sizes).astype(np.float32)
    raw = np.zeros(4 * BY_NAME[kind].nbytes, np.uint8)
    base.ggml_quantize_chunk(BY_NAME[kind].id, x.ctypes.data, raw.ctypes.data, 0, 4, block, None)
    found = _one(path, kind, (block, 4), raw.tobytes())
    assert (found.zero_blocks, found.lost_blocks) == (3, 2)


def test_a_file_of_one_sound_tensor_is_sound(path: Path) -> None:
    ended = command("scan", str(_write(path, (b"w", "Q8_0", (64,), q8_0(1.0, ONES) * 2))))
    assert (ended.code, ended.err) == (0, "")
    assert "tensors to look at" not in ended.out
    assert ended.out.endswith("sound: every scale and value is a number, no scale is lost\n")


def test_blocks_of_zeros_are_told_and_are_no_fault(path: Path) -> None:
    ended = invoke("scan", str(_write(path, (b"w", "Q8_0", (64,), q8_0(1.0, ONES) + q8_0(0.0, ZEROS)))))
    assert ended.code == 0
    assert "      1 block all 0\n" in ended.out
    assert "no scale is lost; 1 tensor with blocks of zeros only\n" in ended.out


def test_what_is_wrong_is_told_by_tensor_and_the_rest_summed_up(path: Path) -> None:
    good, bad = q8_0(1.0, ONES), b"".join(Q8_0_BLOCKS)
    tensors = [(b"good.%d" % i, "Q8_0", (32,), good) for i in range(40)]
    ended = invoke("scan", str(_write(path, *tensors, (b"bad", "Q8_0", (128, 3), bad), (b"norm", "F32", (4,), bytes(16)))))
    assert ended.code == 1
    assert "good." not in ended.out
    assert "  40 bad · Q8_0 · 3 rows of ne 128, 3\n      d: 1 infinite, 1 NaN, 4 subnormal\n" in ended.out
    assert "      3 blocks all 0, 1 of them although their codes differ (lost)\n" in ended.out
    assert "      2 blocks with a scale so small that rounding it may have moved the values (coarse)\n" in ended.out
    assert "row refused by llama.cpp's validation; the first at row 2, block 0: d is infinite (0x7c00 as f16)\n" in ended.out
    totals = [line.split() for line in ended.out.splitlines() if line.startswith("  Q8_0")]
    assert totals == [["Q8_0", "d", "41", "52", "3", "4", "1", "1", "3", "1", "2", "1"]]
    assert ended.out.endswith("not sound: something is wrong in 1 tensor of 42\n")


def test_a_name_reaches_no_terminal_raw(path: Path) -> None:
    ended = invoke("scan", str(_write(path, (HOSTILE, "Q8_0", (32,), q8_0(float("nan"), ONES)))))
    assert "\\x1b[2J\\x1b]0;owned\\x07\\r\\n\\u202e\\xff\\x9b" in ended.out
    assert not any(ord(sign) < 32 and sign != "\n" for sign in ended.out)


def test_json_has_the_same(path: Path) -> None:
    _write(path, (b"\xff", "Q8_0", (128, 3), b"".join(Q8_0_BLOCKS)), (b"w", "Q4_1", (32,), struct.pack("<ee16s", 1, 0, bytes(16))))
    ended = invoke("scan", "--json", str(path))
    tree = json.loads(ended.out)
    assert (ended.code, tree["found"], tree["size"], tree["path"]) == (1, True, str(path.stat().st_size), str(path))
    first, second = tree["tensors"]
    assert (first["name"], first["ne"], first["found"], second["found"]) == ({"hex": "ff"}, ["128", "3"], True, False)
    assert first["scales"] == [{"field": "d", "zero": 3, "subnormal": 4, "infinite": 1, "nan": 1}]
    assert [one["field"] for one in second["scales"]] == ["d", "m"]
    assert (first["lost_blocks"], first["coarse_blocks"], first["refused_rows"]) == (1, 2, 1)


@pytest.mark.parametrize("broken", [b"", b"GGUX", gguf([], [(b"t", 8, (32,), bytes(34))])[:40]])
def test_a_broken_container_is_the_error_of_inspect(path: Path, broken: bytes) -> None:
    path.write_bytes(broken)
    scanned, inspected = invoke("scan", str(path)), invoke("inspect", str(path))
    assert scanned == inspected
    assert (scanned.code, scanned.out) == (1, "")


@pytest.mark.parametrize("what", ["nothing", "a folder"])
def test_what_is_no_file_is_a_usage_error(tmp_path: Path, what: str) -> None:
    ended = invoke("scan", str(tmp_path if what == "a folder" else tmp_path / "none"))
    assert ended.code == 2
    assert str(tmp_path) in ended.err


def test_where_data_is_missing_the_rest_is_looked_at(path: Path) -> None:
    _write(path, (b"a", "Q8_0", (32,), q8_0(float("nan"), ONES)), (b"b", "Q8_0", (64,), q8_0(1.0, ONES) * 2))
    path.write_bytes(path.read_bytes()[:-40])
    found = scan(path)
    assert [(tensor.missing, tensor.scales[0].nan) for tensor in found.tensors] == [(False, 1), (True, 0)]
    assert found.problem.startswith("missing-data")
    ended = invoke("scan", str(path))
    assert ended.code == 1
    assert "      the file ends before its data\n" in ended.out
    assert "not sound: missing-data at byte" in ended.out


def test_a_file_without_tensors_is_sound(path: Path) -> None:
    path.write_bytes(gguf([]))
    assert scan(path) == Scan(str(path), path.stat().st_size, 3, ())
    assert invoke("scan", str(path)).code == 0


def test_memory_does_not_grow_with_the_tensor(path: Path) -> None:
    """A hundred million bytes that are a hole in the file, all of them blocks of zeros."""
    size = 34 * 3_000_000
    head = gguf([], [(b"t", 8, (32, 3_000_000), b"")])
    path.write_bytes(head)
    os.truncate(path, len(head) + size + -size % 32)
    tracemalloc.start()
    (tensor,) = scan(path).tensors
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tensor.zero_blocks, tensor.lost_blocks) == (3_000_000, 0)
    assert peak < 30e6


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("patience", "told"), [(-1, True), (60, False)])
def test_progress_is_told_on_a_terminal_once_it_takes_long(
    path: Path, monkeypatch: pytest.MonkeyPatch, patience: float, told: bool
) -> None:
    monkeypatch.setattr(commands, "_PATIENCE", patience)
    monkeypatch.setattr("conformance.scan.PIECE_BYTES", 34)
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    commands.scan_command(_write(path, (b"t", "Q8_0", (128,), q8_0(1.0, ONES) * 4)), "never", as_json=False)
    assert ("\rscanning: 25%\rscanning: 50%\rscanning: 75%\rscanning: 100%" in terminal.getvalue()) == told
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_the_same_scale_is_coarse_here_as_is_refused_before(path: Path) -> None:
    """A number that impl.check refuses for its scale's coarseness is found in the file that is made of it all the same."""
    x = np.full(32, 5e-6, np.float32)
    with pytest.raises(impl.InputError, match="off"):
        impl.check("Q8_0", x)
    assert _one(path, "Q8_0", (32,), impl.quantize("Q8_0", x).tobytes()).coarse_blocks == 1
