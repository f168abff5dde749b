"""LDS: records of its accesses, and races between them."""
