"""A subject that never dequantizes in time."""

import sys
import time

from impl.serve import main
from impl.subject import Json, Subject


class Slow(Subject):
    """Reads rightly."""

    name = "slow"

    def dequantize(self, request: Json) -> Json:
        time.sleep(60)
        return super().dequantize(request)


if __name__ == "__main__":
    sys.exit(main(Slow(), []))
