"""Takes memory without end, and touches it."""

import itertools

from fake import run

run(lambda _answer: [b"x" * (8 << 20) for _ in itertools.count()])
