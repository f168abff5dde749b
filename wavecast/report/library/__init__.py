"""The kernel library: operators, and sources of exported calls."""
