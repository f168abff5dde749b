"""Memory that PyTorch allocates without filling it, marked so that reads of it can be detected.

`torch.empty` and similar functions return memory filled with the pattern `CANARY`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from torch.overrides import TorchFunctionMode

from wavecast.emulate.check.tensors import CANARY


class FreshMemory(TorchFunctionMode):
    """Fills what `torch.empty`, `empty_like`, `empty_strided` and `Tensor.new_empty` allocate."""

    def __init__(self) -> None:
        super().__init__()
        import torch

        self._torch = torch
        self._makers = {
            torch.empty,
            torch.empty_like,
            torch.empty_strided,
            torch.Tensor.new_empty,
            torch.Tensor.new_empty_strided,
        }

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple = (),
        kwargs: dict | None = None,
    ) -> Any:
        del types
        given = kwargs or {}
        result = func(*args, **given)
        if func in self._makers and given.get("out") is None:
            with self._torch._C.DisableTorchFunction():
                _fill(result)
        return result


def _fill(tensor: Any) -> None:
    """Fill the storage of a new CPU tensor, except for a tail of less than 8 bytes. Tensors of
    `torch.vmap` and fake tensors have no storage."""
    if tensor.is_sparse or tensor.is_quantized:
        return
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError:
        return
    words = storage.nbytes() // 8
    if words and storage.device.type == "cpu":
        memory = (ctypes.c_uint64 * words).from_address(storage.data_ptr())
        np.frombuffer(memory, np.uint64)[:] = CANARY


__all__ = ["CANARY", "FreshMemory"]
