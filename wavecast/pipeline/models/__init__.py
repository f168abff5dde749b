"""Models and modules, with the kernels that run them."""
