"""Run as a program: writes one mebibyte to the path given, where no file may have more than 64 KiB. Prints what came of it."""

import resource
import sys

import impl

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    impl.write(sys.argv[1], {}, [impl.NewTensor("t", (bytes(1 << 15) for _ in range(32)), type="I8", shape=(1 << 20,))])
except OSError as error:
    sys.stdout.write(f"errno {error.errno}\n")
