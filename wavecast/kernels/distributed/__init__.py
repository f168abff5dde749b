"""Collectives as Triton kernels over symmetric memory: every rank reads the memory of its peers."""
