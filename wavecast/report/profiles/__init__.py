"""Profiles of other tools as text, JSON, pages and traces."""
