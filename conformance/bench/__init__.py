"""How long the reference takes beside the library that it is held to: both in one process, on the same data, in turn."""
