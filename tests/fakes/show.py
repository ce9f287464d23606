"""Shows what the harness makes of each fake: ``python -m tests.fakes.show [FILE.gguf] [FAKE ...]``, in the checkout.

Five header requests go to each, numbered from 2 (the hello is 1). A fake misbehaves at 3; what follows has to be sound again.
"""

import ast
import struct
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from conformance.errors import ConfigurationError
from conformance.outcomes import Protocol, outcome_name
from conformance.subjects.manifest import find_manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import HeaderRequest

FOLDER = Path(__file__).resolve().parent
EMPTY_FILE = struct.pack("<4sIQQ", b"GGUF", 3, 0, 0)


def outcomes(fake, path, requests=5):
    """Ask the fake ``requests`` times for the header of ``path``; yield what the harness calls each answer."""
    with Subject(find_manifest(FOLDER / fake)) as subject:
        try:
            for _ in range(requests):
                yield _tell(subject.ask(HeaderRequest(seq=0, path=str(path))).outcome)
        except ConfigurationError as error:
            yield f"ends the run: {error.message.splitlines()[0]}"


def _tell(outcome):
    return f"protocol: {outcome.problem}" if isinstance(outcome, Protocol) else outcome_name(outcome)


def names():
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def purpose(fake):
    return ast.get_docstring(ast.parse((FOLDER / f"{fake}.py").read_text()))


def main(arguments):
    files = [word for word in arguments if word.endswith(".gguf")]
    table = Table("fake", "what it does at request 3", *(f"request {seq}" for seq in range(2, 7)))
    with tempfile.NamedTemporaryFile(suffix=".gguf") as empty:
        empty.write(EMPTY_FILE)
        empty.flush()
        for fake in [word for word in arguments if word not in files] or names():
            table.add_row(fake, purpose(fake), *outcomes(fake, files[0] if files else empty.name))
    Console(width=200).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
