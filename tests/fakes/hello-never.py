"""Never answers the hello."""

import time

from fake import at_hello, run

run(lambda _answer: time.sleep(3600), at_hello)
