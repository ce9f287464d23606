"""Answers one request twice."""

from fake import run, say

run(lambda answer: say(answer + b"\n" + answer))
