"""Search: inputs that nobody declared, put to two subjects until they differ, and then made as small as they can be."""
