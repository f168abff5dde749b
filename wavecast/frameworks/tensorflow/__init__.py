"""TensorFlow: the kernel library as functions on its tensors (`functions`)."""
