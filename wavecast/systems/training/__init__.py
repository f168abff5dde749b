"""Training steps of whole models: time, memory, and parallelism over many GPUs."""
