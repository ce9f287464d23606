"""Dies by SIGSEGV: reads the address 0."""

import ctypes

from fake import run

run(lambda _answer: ctypes.string_at(0))
