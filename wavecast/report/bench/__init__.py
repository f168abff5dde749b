"""Measurements, their comparisons, histories and gates."""
