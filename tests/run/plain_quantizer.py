"""A subject that quantizes without importances only, and says so; it would answer them wrongly."""

import sys

from impl.serve import main
from impl.subject import Json, Subject


class Plain(Subject):
    """Does Q4_0 only."""

    name = "plain"

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        return {**said, "ops": {"quantize": ["Q4_0"], "imatrix": False}}

    def quantize(self, request: Json) -> Json:
        if request.get("imatrix"):
            raise MemoryError("asked for what it does not claim")
        return super().quantize(request)


if __name__ == "__main__":
    sys.exit(main(Plain(), []))
