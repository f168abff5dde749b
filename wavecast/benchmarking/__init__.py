"""Measurements taken, kept, compared and gated; `accuracy`: how far predictions are from them."""
