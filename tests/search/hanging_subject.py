"""The reference, but that it answers no request: it waits instead."""

import sys
import time

from impl.serve import main
from impl.subject import Json, Subject


class Hanging(Subject):
    name = "hanging"

    def header(self, request: Json) -> Json:  # noqa: ARG002 - as the reference has it
        while True:
            time.sleep(60)

    quantize = header


if __name__ == "__main__":
    sys.exit(main(Hanging(), []))
