"""Registers that nothing has written, and lanes that are not active."""
