"""Exits at one request, and at the hello of every later start."""

import os

from fake import AT, run

run(lambda _answer: os._exit(4), lambda request: request["seq"] == AT or (request["op"] == "hello" and request["seq"] > 1))
