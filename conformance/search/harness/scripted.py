"""A subject that says what it was told to, whatever it is asked: a program of its own, on the standard library alone.

``python scripted.py SCRIPT``: SCRIPT is JSON, a list of lines in hex, the first for the hello, the next for the first request, and
so on over all its processes (the harness numbers requests on). ``@`` in a line becomes the request's number; the line is written
as it is, with no newline added. Past its last line it ends. Used once (``scripted.py SCRIPT OP FILE``) it takes the first line for
``hello``, the second for anything else, prints it and exits with the status that the line's first byte says ("0" or "1").
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    """Serve, or answer once; gives the exit status."""
    lines = [bytes.fromhex(line) for line in json.loads(Path(words[0]).read_text(encoding="ascii"))]
    if len(words) > 1:
        line = lines[words[1] != "hello"]
        os.write(1, line[1:])
        return int(line[:1] == b"1")
    for request in iter(sys.stdin.buffer.readline, b""):
        asked = json.loads(request)
        number = 0 if asked["op"] == "hello" else asked["seq"] - 1
        if number >= len(lines):
            return 0
        sys.stdout.buffer.write(lines[number].replace(b"@", b"%d" % asked["seq"]))
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
