"""vLLM with the kernels of the library as AMD machine code; skipped where vLLM is absent."""
