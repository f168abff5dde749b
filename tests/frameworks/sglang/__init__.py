"""SGLang with the kernels of the library."""
