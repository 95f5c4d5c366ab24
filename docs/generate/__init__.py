"""The reference in docs/reference, made from the code that it describes: `make reference` writes it, a test compares it."""
