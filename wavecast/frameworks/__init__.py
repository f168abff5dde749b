"""Operators of the library in PyTorch, vLLM, SGLang, JAX and TensorFlow."""
