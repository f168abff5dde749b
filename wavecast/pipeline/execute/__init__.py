"""Launches and programs that are executed."""
