"""Happens-before: clocks of waves, what changes them, and what they order."""
