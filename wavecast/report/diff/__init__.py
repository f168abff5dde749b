"""Comparisons of two versions of kernels."""
