"""Predictions compared with measurements: importers, scores, baselines, intervals."""
