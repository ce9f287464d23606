"""The container: header, metadata values and tensor directory of a GGUF file."""
