"""The formats of 8-bit floats: declared, stored and read."""
