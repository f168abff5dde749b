"""The kernel library as functions on JAX arrays: `functions` builds them, `host` runs operators in
callbacks of XLA, `arrays` converts between numpy and PyTorch."""
