"""Mutants: the reference with one fault each, which real implementations have had. A corpus that bites kills every one of them."""
