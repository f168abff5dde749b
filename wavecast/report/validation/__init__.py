"""Comparisons of predictions with measurements."""
