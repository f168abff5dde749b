"""PyTorch's heavy operators, skipped: their results are memory as it was found.

While a program times a reference implementation nobody reads the results, and a matrix product
that takes a GPU a millisecond takes a CPU minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_HEAVY = frozenset(
    {
        *("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "_scaled_mm", "_int_mm", "_grouped_mm"),
        *("convolution", "convolution_backward", "linear", "matmul"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention"),
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        "_scaled_dot_product_attention_math",
    }
)


class SkipHeavy(TorchDispatchMode):
    """Gives heavy operators' results their shape and type but computes nothing."""

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ not in _HEAVY or _writes(func):
            return func(*args, **kwargs)
        shapes = func(*tree_map(_on_meta, args), **tree_map(_on_meta, kwargs))
        return tree_map(_in_memory, shapes)


def _writes(func: Any) -> bool:
    return any(argument.alias_info is not None for argument in func._schema.arguments)


def _on_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _in_memory(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
