"""Languages whose programs launch kernels through HIP's modules, in the process that emulates."""
