"""``python -m impl``: the adapter of this package."""

import sys

from impl.serve import main
from impl.subject import Subject

sys.exit(main(Subject(), sys.argv[1:]))
