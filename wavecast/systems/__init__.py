"""Whole models on machines: the kernels of a step, their time, their memory, and serving."""
