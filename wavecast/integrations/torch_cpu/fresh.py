"""Memory that PyTorch allocates without filling it, marked so that reads of it can be detected.

`torch.empty` and similar functions return memory filled with the pattern `CANARY`. The bytes of
narrow dtypes are followed one by one (`host_writes.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from torch.overrides import TorchFunctionMode

from wavecast.emulate.check.tensors import CANARY
from wavecast.emulate.check.written_bytes import WrittenBytes


class FreshMemory(TorchFunctionMode):
    """Fills what `torch.empty`, `empty_like`, `empty_strided` and `Tensor.new_empty` allocate, and
    keeps in `written` what has been written of it."""

    def __init__(self, written: WrittenBytes | None = None) -> None:
        super().__init__()
        import torch

        from wavecast.integrations.torch_cpu.host_writes import HostWrites

        self.written = WrittenBytes() if written is None else written
        self.host = HostWrites(self.written)
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
        if self._torch.compiler.is_compiling():  # Dynamo traces this method
            return result
        if func in self._makers and given.get("out") is None:
            with self._torch._C.DisableTorchFunction():
                self._fill(result)
        elif self.written:
            with self._torch._C.DisableTorchFunction():
                self.host.called(func, args, given)
        return result

    def _fill(self, tensor: Any) -> None:
        """Fill the storage of a new CPU tensor, except for a tail of less than 8 bytes of wide
        values. Tensors of `torch.vmap` and fake tensors have no storage."""
        if tensor.is_sparse or tensor.is_quantized:
            return
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:
            return
        if storage.device.type != "cpu" or self.host.allocated(tensor):
            return
        words = storage.nbytes() // 8
        if words:
            memory = (ctypes.c_uint64 * words).from_address(storage.data_ptr())
            np.frombuffer(memory, np.uint64)[:] = CANARY


__all__ = ["CANARY", "FreshMemory"]
