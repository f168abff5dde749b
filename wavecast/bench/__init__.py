"""Measurements: taken, kept, compared, gated; and how far predictions are from them (`accuracy`)."""
