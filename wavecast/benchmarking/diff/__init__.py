"""Two versions of a kernel, or one under two compilers, side by side."""
