"""Work, bounds and time of kernels and operations: the performance model."""
