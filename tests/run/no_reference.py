"""A subject that quantizes and dequantizes IQ4_NL, and says nothing of the type's reference function."""

import sys

from impl.serve import main
from impl.subject import Json, Subject


class NoReference(Subject):
    """Does what it does rightly."""

    name = "no-reference"

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        return {**said, "ops": {"quantize": ["IQ4_NL"], "dequantize": ["IQ4_NL"]}}


if __name__ == "__main__":
    sys.exit(main(NoReference(), []))
