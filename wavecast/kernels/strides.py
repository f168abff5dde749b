"""Tensors with the strides that a kernel takes, copied where they have others."""

import torch


def contiguous(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """A tensor, if there is one, with contiguous memory."""
    return None if tensor is None else tensor.contiguous()


def adjacent(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements along the last dimension are adjacent."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def rows_of(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as [rows, columns]: its last dimension, whose elements are adjacent, and all others
    together."""
    flat = tensor.reshape(-1, tensor.shape[-1])
    return flat if flat.shape[1] == 1 else adjacent(flat)
