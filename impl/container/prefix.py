"""A file that is still coming in: its header is read as soon as enough is there."""

from __future__ import annotations

from collections.abc import Collection

from impl.container.cursor import MoreNeededError
from impl.container.file import File, new_cursor
from impl.container.new_tensor import flat
from impl.container.profiles import rules_of
from impl.container.reader import HeaderReader
from impl.errors import InputError


class Prefix:
    """The start of a file, which grows. ``needed`` is how many more bytes its header takes at least; ``file`` is there at 0.

    What was read once is not read again: each piece that is fed costs what it holds::

        prefix = impl.Prefix()
        while prefix.needed:
            piece = download(prefix.needed)
            prefix.feed(piece) if piece else prefix.finish()
        prefix.file.metadata["general.architecture"]
    """

    def __init__(
        self, *, profile: str = "llama.cpp", versions: Collection[int] | None = None, byteorder: str | None = None
    ) -> None:
        """Take what ``impl.open`` takes, and raise the same InputError."""
        self._rules = rules_of(profile, versions, byteorder)
        self._buffer = bytearray()
        self._reader = HeaderReader(new_cursor(self._buffer, self._rules, complete=False), self._rules)
        self._end = 0
        self.file: File | None = None
        self._try()

    @property
    def needed(self) -> int:
        """How many more bytes are needed at least; 0 once the header is there."""
        return self._end - len(self._buffer) if self.file is None else 0

    def feed(self, data: bytes | bytearray | memoryview) -> int:
        """Take the next bytes of the file; give ``needed``. More than the header takes may come with them, and are kept.

        Raises:
            GgufError: the file is refused.
            InputError: the header is there already.

        """
        if self.file is not None:
            raise InputError("the header is complete: take `file`; its data is read from where the file will lie")
        self._buffer += flat(data, "the next bytes")
        if len(self._buffer) >= self._end:
            self._try()
        return self.needed

    def finish(self) -> File:
        """Say that the file ends here; give it. Raises GgufError where its header is not there."""
        if self.file is None:
            self._reader.cursor.complete = True
            self._try()
        assert self.file is not None  # noqa: S101 - a complete file is read or refused
        return self.file

    def _try(self) -> None:
        cursor = self._reader.cursor
        cursor.end = len(self._buffer)
        try:
            header = self._reader.read()
        except MoreNeededError as more:
            self._end = more.end
            return
        self.file = File(self._buffer, header, self._rules, cursor.order)
