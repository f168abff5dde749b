"""JAX: the kernel library on its arrays (`functions`), and Pallas kernels (`pallas`)."""
