"""The kernel library in PyTorch: `torch.ops.wavecast.*`, checked, swapped into models."""
