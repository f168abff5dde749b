"""Figures over commits, and where they change."""
