"""The operators of the kernel library, as launches and as exported calls."""
