"""Global memory: records of its accesses, and races between them."""
