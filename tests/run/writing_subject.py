"""A subject that writes files, and then spoils one byte: the one that ``at`` names in its argument, counted from the end."""

import sys
from pathlib import Path

from impl.serve import main
from impl.subject import Json, Subject


class Writing(Subject):
    name = "writing"

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def write(self, request: Json) -> Json:
        super().write(request)
        out = Path(request["out"])
        data = bytearray(out.read_bytes())
        data[-self.at] ^= 0x40
        out.write_bytes(data)
        return {}


if __name__ == "__main__":
    sys.exit(main(Writing(int(sys.argv[1])), []))
