"""Command lines: commands that read and judge, with options that they have and have not, and values of all sorts.

Commands that install, download, record or measure for long are only asked for their help.
"""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.search.harness.oracles.command_lines import FILES, Typed

_HEAVY = ("record", "sweep", "fuzz", "build-authority", "bench", "doctor", "search")
_IDS = ("own/small/plain", "own/small", "own/**", "!own/**", "!", "**", "", "nothing", "own/small/pl?in", "[", "own//small")
_WORDS = ("", ".", "..", "--", "-", "-h", "x", "\u00e9", "\udcff", "a\nb", "\x1b[2J", "x" * 300)
_NUMBERS = ("0", "1", "-1", "2", "1e3", "0x1", "nan", "9" * 30)
_CHOICES = ("auto", "always", "never", "live?", "golden", "llama.cpp", "gguf-py", "spec")
_VALUES = (*_WORDS, *_NUMBERS, *_CHOICES, *FILES, *_IDS)
_OPTIONS = {
    "run": (
        "-S",
        "-s",
        "--oracle",
        "--profile",
        "--cases",
        "-j",
        "--report",
        "--no-report",
        "--validate",
        "--by-type",
        "--color",
        "-q",
    ),
    "list": ("-s", "--cases", "--json", "-x"),
    "explain": ("-S", "--profile", "--cases", "--color"),
    "report": ("--to", "--by-type", "--color"),
    "inspect": ("--tensor", "--values", "--all", "--json", "--color"),
    "scan": ("--json", "--color"),
    "fetch": ("-s", "--cases"),
}
# So that what follows is reached, and nothing runs that takes long: small cases, and a subject that ends at once.
_BASE = {
    "run": ["-S", "adapter", "--cases", "cases", "--oracle", "golden"],
    "list": ["--cases", "cases"],
    "explain": ["own/small/bad", "-S", "adapter", "--cases", "cases", "--oracle", "golden"],
    "report": ["events.ndjson"],
    "inspect": ["file.gguf"],
    "scan": ["file.gguf"],
    "fetch": ["--cases", "cases"],
}


def documents() -> st.SearchStrategy[Typed]:
    """Give the words after the program's name, and an encoding of the streams."""
    heavy = st.sampled_from(_HEAVY).map(lambda name: (name, "--help"))
    loose = st.lists(st.sampled_from(("--help", "--version", "-x", "", "help", *_VALUES)), max_size=3).map(tuple)
    command = st.sampled_from(sorted(_OPTIONS)).flatmap(_words)
    words = st.one_of(command, command, command, loose.filter(lambda words: not set(words) & set(_HEAVY)), heavy)
    return st.builds(Typed, words, st.sampled_from(["utf-8", "ascii"]))


def _words(name: str) -> st.SearchStrategy[tuple[str, ...]]:
    value = st.one_of(st.sampled_from(_VALUES), st.text(st.characters(exclude_characters="/~\0"), max_size=5)).filter(
        lambda text: text != "impl"
    )
    option = st.one_of(
        st.tuples(st.sampled_from(_OPTIONS[name]), value),
        st.tuples(st.sampled_from(_OPTIONS[name])),
        st.tuples(value),
    )
    more = st.lists(option, max_size=3).map(lambda options: [word for words in options for word in words])
    bare = st.lists(option, max_size=2).map(lambda options: (name, *(word for words in options for word in words)))
    based = more.map(lambda words: (name, *_BASE[name], *words))
    # Without their --cases the others would take all the cases that there are, and fetch their models.
    return st.one_of(based, based, based, bare) if name in ("report", "inspect", "scan") else based
