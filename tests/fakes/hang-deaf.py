"""Neither reads its stdin any more nor answers."""

import time

from fake import run

run(lambda _answer: time.sleep(3600))
