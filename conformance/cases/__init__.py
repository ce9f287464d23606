"""From YAML to a Case: the grammar, the GGUF builder with its field map, and the number generator."""
