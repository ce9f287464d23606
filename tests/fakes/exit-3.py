"""Exits with status 3 instead of an answer."""

import os

from fake import run

run(lambda _answer: os._exit(3))
