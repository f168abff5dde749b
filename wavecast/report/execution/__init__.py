"""Executed launches: results, reports of checks, traces."""
