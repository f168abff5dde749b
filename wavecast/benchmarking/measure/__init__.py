"""Measuring: on a GPU, or by prediction, static analysis and execution on the emulator."""
