"""Prints a banner to stdout before its first answer."""

from fake import run, say

say(b"fake 1.0, copyright nobody")
run(say, lambda _request: True)
