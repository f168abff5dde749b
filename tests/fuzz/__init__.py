"""Damaged inputs, made from a seed: each gives a result or a `WavecastError`, in bounded time."""
