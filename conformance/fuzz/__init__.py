"""Fuzzing of the reference's reader: what it is held to on bytes that nobody chose."""
