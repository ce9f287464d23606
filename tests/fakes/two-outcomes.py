"""Answers with ok and error in one."""

import json

from fake import run, say

run(lambda answer: say(json.dumps({**json.loads(answer), "ok": {}, "error": "not sure"}).encode()))
