"""What gguf.md (docs/gguf.md of ggml-org/ggml) asks of a file, sentence by sentence in other words, and where it says nothing."""

from __future__ import annotations

from typing import Literal, NamedTuple

Strength = Literal["must", "should", "silent"]


class Requirement(NamedTuple):
    """One requirement. Cases that bear one of ``labels`` (docs/reader-rules.md) stand for it."""

    section: str
    strength: Strength
    text: str
    labels: tuple[str, ...]


_FILE, _HEAD, _PAIRS, _VALUES, _INFOS, _DATA = (
    "The file",
    "The header",
    "Pairs and keys",
    "Values",
    "Tensor infos",
    "Alignment and tensor data",
)

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        _FILE, "must", "Header, pairs, tensor infos, padding and tensor data follow each other in this order.", ("A07", "C12")
    ),
    Requirement(_FILE, "must", "Fields follow each other without any padding between them.", ("A07", "D09", "D10")),
    Requirement(_FILE, "should", "A file is little-endian, if nothing from outside says otherwise.", ("S3",)),
    Requirement(_FILE, "should", "All numbers of a big-endian file are big-endian, the tensors' too.", ("T05", "F03")),
    Requirement(_FILE, "silent", "Bytes behind the end of the tensor data.", ("T58",)),
    Requirement(_HEAD, "must", "The first four bytes are 47 47 55 46.", ("S1", "T01")),
    Requirement(_HEAD, "must", "The version, a u32, is 3.", ("S4", "T04")),
    Requirement(_HEAD, "silent", "What a reader of today does with version 2, which has the same layout.", ("T03",)),
    Requirement(_HEAD, "should", "Version 1, with its 32-bit counts and lengths, is another format.", ("A08", "T02")),
    Requirement(_HEAD, "must", "The number of tensors, then that of pairs, each a u64.", ("S5", "C7", "C8")),
    Requirement(_HEAD, "must", "As many pairs and as many tensor infos follow as the numbers say.", ("S5", "T07", "T08")),
    Requirement(_PAIRS, "must", "A pair is a key, a value type and a value of it.", ("C12", "T26")),
    Requirement(_PAIRS, "must", "A key is ASCII, segments in lower_snake_case with dots between.", ("S9", "T12", "T13", "T14")),
    Requirement(_PAIRS, "must", "A key has at most 2^16-1 bytes.", ("T11",)),
    Requirement(_PAIRS, "must", "A key is not empty: it has a segment.", ("T09",)),
    Requirement(_PAIRS, "silent", "A key that comes twice.", ("T10",)),
    Requirement(_PAIRS, "should", "Counts and lengths in values are u64; readers take u32 too.", ("S18",)),
    Requirement(_VALUES, "must", "A value type is a u32 of 0 to 12.", ("S10", "T19")),
    Requirement(_VALUES, "must", "Integers have 8, 16, 32 or 64 bits, with a sign or without one.", ("D09",)),
    Requirement(_VALUES, "must", "Floats are of IEEE 754, with 32 or 64 bits.", ("D09",)),
    Requirement(_VALUES, "must", "A bool is a byte of 0 or 1; anything else is invalid.", ("S6", "T20")),
    Requirement(
        _VALUES, "must", "A string is its length in bytes, a u64, and UTF-8 without a NUL at its end.", ("S7", "T16", "T18")
    ),
    Requirement(_VALUES, "must", "An array is the type of its elements, their number as a u64, and the elements.", ("S8", "T24")),
    Requirement(_VALUES, "must", "An array may hold arrays.", ("T21",)),
    Requirement(_VALUES, "must", "An array may be empty; its type is one of the known ones then too.", ("T22", "T23")),
    Requirement(_VALUES, "silent", "How deep arrays may lie in arrays; a bound on strings and arrays.", ("T17", "T25", "D08")),
    Requirement(_INFOS, "must", "An info is a name, the number of dimensions, these, a type and an offset.", ("C28", "C12")),
    Requirement(_INFOS, "must", "A name is a string of at most 64 bytes.", ("S11", "T35", "T36")),
    Requirement(_INFOS, "silent", "An empty name.", ("T37",)),
    Requirement(_INFOS, "silent", "A name that comes twice.", ("T38",)),
    Requirement(_INFOS, "must", "A tensor has at most 4 dimensions today.", ("S12", "T40")),
    Requirement(_INFOS, "must", "A dimension is a u64.", ("T42",)),
    Requirement(_INFOS, "silent", "A tensor without dimensions, and a dimension of 0.", ("T39", "T41")),
    Requirement(_INFOS, "silent", "Products of dimensions and sizes in bytes beyond 64 bits.", ("T43", "Z05")),
    Requirement(_INFOS, "should", "Dimensions stand with the fastest first: the text leaves it to ggml.", ("E04",)),
    Requirement(_INFOS, "must", "A type is a u32, one of the listed ggml types.", ("S13", "T49")),
    Requirement(_INFOS, "must", "Types that were removed from the list are not used.", ("T46",)),
    Requirement(_INFOS, "silent", "Types that are newer than the list.", ("T47", "T48")),
    Requirement(_INFOS, "must", "A type has ggml's elements and bytes a block.", ("Z14", "T50")),
    Requirement(_INFOS, "silent", "A row that is no whole number of blocks.", ("T51",)),
    Requirement(_INFOS, "must", "An offset, a u64, counts from the start of the tensor data.", ("S14",)),
    Requirement(_INFOS, "must", "An offset is a multiple of the alignment.", ("T52",)),
    Requirement(_INFOS, "should", "Tensors lie in any order, with or without gaps.", ("T53",)),
    Requirement(_INFOS, "silent", "Tensors that overlap.", ("T54",)),
    Requirement(_DATA, "must", "general.alignment is a u32.", ("T27",)),
    Requirement(_DATA, "must", "It is a multiple of 8, and not 0.", ("S16", "T28", "T29", "T30")),
    Requirement(_DATA, "must", "Without it the alignment is 32.", ("B09",)),
    Requirement(_DATA, "must", "Infos are padded up to the alignment, where the tensor data start.", ("S2", "B10", "C29")),
    Requirement(_DATA, "should", "Padding is bytes of 0.", ("T34",)),
    Requirement(_DATA, "must", "Each tensor lies within the tensor data.", ("S15", "T55", "T56")),
    Requirement(
        _DATA, "should", "Behind a tensor there is padding up to the next one; behind the last one none is asked for.", ("T57",)
    ),
)
