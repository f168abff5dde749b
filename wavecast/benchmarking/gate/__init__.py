"""Kernels under guard: measured, and compared with a committed baseline."""
