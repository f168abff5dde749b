"""PyTorch programs written for a GPU, run on CPU tensors: `emulated_cuda`."""

from wavecast.runtimes.torch_cpu.emulation import emulated_cuda, has_gpu

__all__ = ["emulated_cuda", "has_gpu"]
