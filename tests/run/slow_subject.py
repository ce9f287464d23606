"""A subject that never dequantizes in time. Of each start it leaves a letter in the file that it is given."""

import sys
import time
from pathlib import Path

from impl.serve import main
from impl.subject import Json, Subject


class Slow(Subject):
    """Reads rightly."""

    name = "slow"

    def dequantize(self, request: Json) -> Json:
        time.sleep(60)
        return super().dequantize(request)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a") as starts:
        starts.write("s")
    sys.exit(main(Slow(), []))
