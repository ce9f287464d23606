"""Where a file comes from: a mapping, a stream, the start of a download, parts; and the two loops over strings."""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import random
import struct
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from impl_build import ARR, I32, STR, U8, U16, U32, alignment, array, gguf, pair, sound_file, string, tensor, u32
from impl_mutants import SEEDS, mutants

import impl
from conformance.subjects.authorities.llama_cpp.library import package_folder
from impl import GgufError, InputError
from impl.container import strings
from impl.container.describe import describe
from impl.container.profiles import PROFILES
from impl.container.split import split_path


class Pipe(io.RawIOBase):
    """A stream that cannot seek, gives a few bytes at a time, and counts what was taken."""

    def __init__(self, data: bytes, most: int = 7) -> None:
        self.data, self.most, self.taken = data, most, 0

    def read(self, size: int = -1, /) -> bytes:
        """Give up to ``most`` bytes."""
        assert size > 0
        piece = self.data[self.taken : self.taken + min(size, self.most)]
        self.taken += len(piece)
        return piece

    def seek(self, *_: object) -> int:
        """Refuse."""
        raise io.UnsupportedOperation


def told(how: object) -> str:
    """Give what reading comes to, as text: the header, or the whole message of the refusal."""
    try:
        file = how()  # type: ignore[operator] # a function without arguments
    except GgufError as error:
        return str(error)
    return str(describe(file.header))


def fed(data: bytes, step: int, profile: str) -> impl.File:
    prefix = impl.Prefix(profile=profile)
    at = 0
    while prefix.needed and at < len(data):
        prefix.feed(data[at : at + step])
        at += step
    return prefix.finish()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_stream_and_a_growing_prefix_are_read_as_the_bytes_are(profile: str) -> None:
    rng = random.Random(3)  # noqa: S311 - not for secrets
    for data in (*SEEDS, *mutants(250, seed=11)):
        whole = told(lambda data=data: impl.open(data, profile=profile))
        stream = told(lambda data=data: impl.open(Pipe(data), profile=profile))
        step = rng.choice((1, 3, 50))
        prefix = told(lambda data=data, step=step: fed(data, step, profile))
        if profile == "gguf-py" and "are there" in whole:
            continue  # data that is missing: of a stream, its end would have to be seen first
        assert (stream, prefix) == (whole, whole), data


def test_of_a_stream_no_more_is_read_than_the_header() -> None:
    data = sound_file() + bytes(1000)
    pipe = Pipe(data)
    file = impl.open(pipe)
    assert pipe.taken == file.data_offset
    assert describe(file.header) == describe(impl.open(data).header)
    with pytest.raises(InputError, match="open the stream with full=True"):
        _ = file.tensors[0].data
    with pytest.raises(InputError, match="open it with full=True"):
        file.check_load()


def test_a_stream_in_full_has_its_data() -> None:
    data = sound_file()
    pipe = Pipe(data + bytes(1000))
    file = impl.open(pipe, full=True)
    assert pipe.taken == file.data_offset + file.header.data_size
    assert [tensor.data.tolist() for tensor in file.tensors] == [tensor.data.tolist() for tensor in impl.open(data).tensors]
    with pytest.raises(ValueError, match="read-only"):
        file.tensors[0].data[0, 0] = 1


def test_a_stream_that_does_not_begin_at_zero(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"something else" + sound_file())
    with path.open("rb") as stream:
        stream.seek(14)
        file = impl.open(stream, full=True)
    assert file.data_offset == impl.open(sound_file()).data_offset
    assert file.tensors[0].data.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_a_pipe_of_the_system() -> None:
    out, into = os.pipe()
    threading.Thread(target=lambda: (os.write(into, sound_file()), os.close(into))).start()
    with open(out, "rb", buffering=0) as stream:  # noqa: PTH123 - a descriptor has no Path
        assert impl.open(stream, full=True).tensors[2].data.tobytes() == b"xyz"


@pytest.mark.parametrize(("given", "shown"), [("text", "gave str.*binary mode"), (None, "gave NoneType.*to wait")])
def test_a_stream_without_bytes(given: object, shown: str) -> None:
    class Odd:
        def read(self, _size: int) -> object:
            return given

    with pytest.raises(InputError, match=shown):
        impl.open(Odd())  # type: ignore[arg-type] # that is the point


def test_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(sound_file())
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    opened = impl.open(mapping, full=True)
    assert opened.buffer is mapping
    assert opened.tensors[2].data.tobytes() == b"xyz"


def test_what_a_stream_claims_is_not_set_aside() -> None:
    """A string of a gigabyte, an array of 2^30 numbers, of which ten kilobytes come."""
    for value in (
        pair(b"a", STR, string(b"", 2**30)),
        pair(b"a", ARR, array(U32, 2**30, b"")),
        pair(b"a", ARR, array(STR, 2**27, b"")),
    ):
        data = gguf([value]) + bytes(10_000)
        tracemalloc.start()
        with pytest.raises(GgufError, match="are left"):
            impl.open(Pipe(data, 4096))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2_000_000


class TestPrefix:
    def test_it_says_what_is_needed_at_least_and_never_more(self) -> None:
        """Fed exactly what it asks for, it ends with the header and has read nothing behind it."""
        data = sound_file()
        prefix = impl.Prefix()
        fed = 0
        while prefix.needed:
            piece = data[fed : fed + prefix.needed]
            fed += len(piece)
            prefix.feed(piece)
        assert fed == impl.open(data).data_offset
        assert prefix.file is not None
        assert describe(prefix.file.header) == describe(impl.open(data).header)

    def test_an_array_of_strings_asks_for_all_their_lengths_at_once(self) -> None:
        data = gguf([pair(b"a", ARR, array(STR, 10_000, string(b"xy") * 10_000))])
        prefix, asked, at = impl.Prefix(), 0, 0
        while prefix.needed:
            need = prefix.needed
            prefix.feed(data[at : at + need])
            at, asked = at + need, asked + 1
        assert asked < 30

    def test_more_than_the_header_is_kept(self) -> None:
        prefix = impl.Prefix()
        assert prefix.feed(sound_file()) == 0
        assert prefix.file is not None
        assert prefix.file.tensors[2].data.tobytes() == b"xyz"
        with pytest.raises(InputError, match="the header is complete"):
            prefix.feed(b"x")

    @pytest.mark.parametrize("piece", ["GGUF", None, 7, [71]])
    def test_what_holds_no_bytes_is_refused(self, piece: object) -> None:
        prefix = impl.Prefix()
        with pytest.raises(InputError, match=f"the next bytes must come as bytes or arrays, not {type(piece).__name__}"):
            prefix.feed(piece)  # type: ignore[arg-type] # what is tested
        assert prefix.feed(memoryview(sound_file())) == 0

    def test_a_fault_shows_as_soon_as_it_is_there(self) -> None:
        prefix = impl.Prefix()
        prefix.feed(b"GGU")
        with pytest.raises(GgufError, match="starts with 'GGUX'"):
            prefix.feed(b"X")

    def test_what_was_read_is_not_read_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fed byte by byte, each string is passed about once: not once for each byte that came after it."""
        passed = 0
        keep = strings._find_ends

        def counted(scan: object, pos: int, count: int) -> object:
            nonlocal passed
            found = keep(scan, pos, count)  # type: ignore[arg-type] # what it was called with
            passed += len(found)
            return found

        monkeypatch.setattr(strings, "_pays", lambda: False)
        monkeypatch.setattr(strings, "_find_ends", counted)
        data = gguf([pair(b"a", ARR, array(STR, 500, string(b"x" * 30) * 500))])
        fed(data, 1, "llama.cpp")
        assert 500 <= passed <= 1500


class TestTwoLoops:
    """The compiled loop over strings gives what the plain one gives, the refusals word by word."""

    @staticmethod
    def _cases() -> Iterator[bytes]:
        words = [b"one", b"", "größe".encode(), b"\xff" * 300]
        yield gguf([pair(b"a", ARR, array(STR, 4, b"".join(map(string, words)))), pair(b"s", U8, b"\7")])
        for length in (1, 2**30 + 1, 2**63, 2**64 - 1, 2**64 - 8):
            yield gguf([pair(b"a", ARR, array(STR, 3, string(b"ab") + string(b"", length) + string(b"c")))])
        whole = gguf([pair(b"a", ARR, array(STR, 3, string(b"ab") * 3))])
        yield from (whole[: len(whole) - cut] for cut in range(1, 30))

    @pytest.mark.parametrize("profile", PROFILES)
    def test_they_agree(self, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
        cases = [*self._cases(), *mutants(150, seed=23)]
        monkeypatch.setattr(strings, "_pays", lambda: False)
        plain = [told(lambda data=data: impl.open(data, profile=profile)) for data in cases]
        monkeypatch.setattr(strings, "_pays", lambda: True)
        assert [told(lambda data=data: impl.open(data, profile=profile)) for data in cases] == plain

    @pytest.mark.parametrize("compiled", [False, True])
    def test_the_longest_string_is_one_of_a_gibibyte(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
        monkeypatch.setattr(strings, "_pays", lambda: compiled)
        path = tmp_path / "x"
        for over in (0, 1):
            path.write_bytes(gguf([pair(b"a", ARR, array(STR, 1, string(b"", 2**30 + over)))]))
            os.truncate(path, path.stat().st_size + 2**30 + over)
            if over:
                with pytest.raises(GgufError, match="1073741825 is over the limit"):
                    impl.open(path)
            else:
                assert len(impl.open(path).metadata.value("a").ends) == 1

    def test_the_compiled_one_is_used_once_it_is_paid_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(strings, "CHUNK", 100)
        monkeypatch.setattr(strings, "STRINGS_TO_LOAD_LOOP", 250)
        monkeypatch.setattr(strings, "STRINGS_TO_LOAD_NUMBA", 250)
        monkeypatch.setattr(strings, "_spent", 0)
        monkeypatch.delitem(sys.modules, "impl.container.compiled_ends", raising=False)
        counted: list[int] = []
        keep = strings._find_ends
        monkeypatch.setattr(strings, "_find_ends", lambda scan, pos, count: counted.append(count) or keep(scan, pos, count))
        words = [struct.pack(">I", number) for number in range(1000)]
        value = impl.open(gguf([pair(b"a", ARR, array(STR, 1000, b"".join(map(string, words))))])).metadata.value("a")
        assert value.raw() == words
        assert counted == [100, 100, 100]

    def test_a_small_file_loads_no_compiler(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        path.write_bytes(sound_file())
        code = "import sys, impl; impl.open(sys.argv[1]); print(sorted({'numba', 'numpy'} & set(sys.modules)))"
        code += "; impl.load_compiled_scan(); print('numba' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["[]", "True"]


class TestSplit:
    """Parts as llama.cpp's gguf-split writes them."""

    @staticmethod
    def _part(number: int, count: int = 3, *, total: int = 4, names: tuple[bytes, ...] = (), no_type: int = U16) -> bytes:
        pairs = [
            pair(b"split.no", no_type, struct.pack("<H", number) + bytes(2 * (no_type == U32))),
            pair(b"split.count", U16, struct.pack("<H", count)),
            pair(b"split.tensors.count", I32, struct.pack("<i", total)),
        ]
        if number == 0:
            pairs.append(pair(b"general.name", STR, string(b"whole")))
        entries = [tensor(name, [8], 0, 32 * i) for i, name in enumerate(names)]
        data = b"".join(struct.pack("<8f", *[number + i / 10] * 8) for i in range(len(names)))
        return gguf(pairs, entries, data=data)

    def _write(self, folder: Path, **changed: bytes) -> Path:
        parts = {"p0": self._part(0), "p1": self._part(1, names=(b"a", b"b")), "p2": self._part(2, names=(b"c", b"d")), **changed}
        for number, data in enumerate(parts.values()):
            if data:
                (folder / split_path("m", number, 3)).write_bytes(data)
        return folder / "m-00001-of-00003.gguf"

    def test_the_parts_are_one(self, tmp_path: Path) -> None:
        model = impl.open_split(self._write(tmp_path), full=True)
        assert [tensor.name for tensor in model.tensors] == ["a", "b", "c", "d"]
        assert [float(tensor.data[0]) for tensor in model.tensors] == pytest.approx([1, 1.1, 2, 2.1])
        assert (len(model.parts), model.metadata["general.name"]) == (3, "whole")

    def test_a_file_that_is_not_split_is_one_part(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(sound_file())
        model = impl.open_split(path)
        assert (len(model.parts), len(model.tensors)) == (1, 3)

    @pytest.mark.skipif(package_folder() is None, reason="needs the live library: pip install 'gguf-conformance[live]'")
    def test_names_are_those_that_llama_cpp_makes(self) -> None:
        """Of the library alone: the package's own module wants more packages than are needed here."""
        folder = package_folder()
        assert folder is not None
        library = ctypes.CDLL(str(folder / "lib" / "libllama.so"))
        made = ctypes.create_string_buffer(300)
        for number, count in ((0, 3), (11, 12), (99999, 123456)):
            library.llama_split_path(made, ctypes.c_size_t(300), b"a/b-c", number, count)
            assert split_path("a/b-c", number, count) == made.value.decode()

    @pytest.mark.parametrize(
        ("changed", "shown"),
        [
            ({"p2": b""}, r"part 3 of 3 is missing: .*m-00003-of-00003\.gguf is not there"),
            ({"p1": _part.__func__(2, names=(b"a", b"b"))}, r"00002-of-00003\.gguf: split\.no is 2, not 1"),
            ({"p1": _part.__func__(1, 4, names=(b"a", b"b"))}, r"split\.count is 4, not 3"),
            ({"p2": _part.__func__(2, names=(b"c",))}, r"split\.tensors\.count is 4, but the 3 parts have 3"),
            ({"p2": _part.__func__(2, names=(b"a", b"c"))}, "two parts have a tensor named 'a'"),
            ({"p1": gguf()}, r"00002-of-00003\.gguf: the key split\.no is missing"),
            ({"p1": _part.__func__(1, names=(b"a", b"b"), no_type=U32)}, r"split\.no is of type u32, it must be u16"),
            ({"p0": _part.__func__(1)}, r"says that it is part 2 of 3, but its name does not end with -00002-of-00003\.gguf"),
        ],
    )
    def test_parts_that_do_not_belong_together(self, tmp_path: Path, changed: dict[str, bytes], shown: str) -> None:
        with pytest.raises(InputError, match=shown):
            impl.open_split(self._write(tmp_path, **changed))

    def test_a_part_that_is_refused_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(GgufError, match=r"starts with 'GGUX', not with 'GGUF', in m-00002-of-00003\.gguf") as refused:
            impl.open_split(self._write(tmp_path, p1=b"GGUX" + bytes(20)))
        assert (refused.value.reject_class, refused.value.at) == ("bad-magic", 0)

    def test_the_first_part_alone_says_how_many_tensors_there_are(self, tmp_path: Path) -> None:
        other = self._part(1, names=(b"a", b"b"), total=9)
        assert len(impl.open_split(self._write(tmp_path, p1=other)).tensors) == 4

    def test_data_that_are_missing_are_missed_where_they_are_asked_for(self, tmp_path: Path) -> None:
        path = self._write(tmp_path, p2=self._part(2, names=(b"c", b"d"))[:-40])
        assert len(impl.open_split(path).tensors) == 4
        with pytest.raises(GgufError, match="the file ends"):
            impl.open_split(path, full=True)

    def test_another_part_than_the_first(self, tmp_path: Path) -> None:
        second = self._write(tmp_path).with_name("m-00002-of-00003.gguf")
        with pytest.raises(InputError, match=r"is part 2 of 3: give the first one, m-00001-of-00003\.gguf"):
            impl.open_split(second)


def test_a_sparse_file_of_100_gb_opens_without_its_data(tmp_path: Path) -> None:
    """Its header is read, and its size does not matter; the last byte is there, too."""
    rows = 100 * 10**9 // 4096
    head = gguf([alignment(32), pair(b"n", U32, u32(7))], [tensor(b"t", [4096, rows], 24)], data=b"")
    path = tmp_path / "x"
    path.write_bytes(head)
    try:
        os.truncate(path, len(head) + 4096 * rows)
    except OSError as error:
        pytest.skip(f"the file system takes no sparse file of 100 GB: {error}")
    tracemalloc.start()
    file = impl.open(path, full=True)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert (file.metadata["n"], file.tensors[0].raw[-1]) == (7, 0)
