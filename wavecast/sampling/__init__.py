"""Predictions from executed samples: which workgroups to run, what they did, the launch profile."""
