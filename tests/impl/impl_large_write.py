"""Run as a program: writes 192 MiB that come piece by piece, and prints how much the process grew meanwhile, in MiB."""

import resource
import sys

import impl

PIECE = 1 << 20
impl.write(sys.argv[1], {}, [impl.NewTensor("t", [bytes(PIECE)], type="I8", shape=(PIECE,))])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
impl.write(sys.argv[1], {}, [impl.NewTensor("t", (bytes(PIECE) for _ in range(192)), type="I8", shape=(192 * PIECE,))])
sys.stdout.write(f"{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10}\n")
