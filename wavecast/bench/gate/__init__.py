"""Thresholds against a committed baseline."""
