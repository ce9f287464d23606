"""The reference's reader, but that it dies of a tensor whose name has a q in it."""

import os
import sys

from impl.serve import main
from impl.subject import Json, Subject


class Dying(Subject):
    name = "dying"

    def header(self, request: Json) -> Json:
        said = super().header(request)
        if any("q" in str(tensor["name"]) for tensor in said["tensors"]):
            os.abort()
        return said


if __name__ == "__main__":
    sys.exit(main(Dying(), []))
