"""Attention over a paged cache of keys and values, and writing such a cache."""
