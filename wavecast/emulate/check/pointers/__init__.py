"""Whose memory an address is, and what lies there."""
