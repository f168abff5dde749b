"""How bits, lanes and registers of a program depend on each other, at translation."""
