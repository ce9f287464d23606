"""Exits with status 0 instead of an answer, without a word."""

import os

from fake import run

run(lambda _answer: os._exit(0))
