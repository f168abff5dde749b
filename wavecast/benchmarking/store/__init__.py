"""Measurements on disk: one append-only file, its exports and imports."""
