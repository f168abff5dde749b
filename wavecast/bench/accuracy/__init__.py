"""Predictions beside measurements: data sets, scores, baselines, intervals."""
