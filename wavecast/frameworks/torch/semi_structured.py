"""PyTorch's semi-structured sparse weights (`torch.sparse.to_sparse_semi_structured`) by
`matmul_sparse24`.

Those that PyTorch compressed for CUTLASS have the library's values, and its index in another order:
`torch.sparse._semi_structured_conversions`. What cuSPARSELt and hipSPARSELt compress is opaque; it
is expanded, by a product, and compressed again, which only `compressed` outside of a graph does.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.sparse import SparseSemiStructuredTensor
from torch.sparse._semi_structured_conversions import _calculate_meta_reordering_scatter_offsets

from wavecast.kernels.registry import operator
from wavecast.kernels.sparse.compression import compress_sparse24
from wavecast.launch import gpu

_COLUMNS: Final = 32
"""Columns of a weight are a multiple of these."""


def is_semi_structured(weight: Any) -> bool:
    """Whether a tensor is one of PyTorch's semi-structured sparse weights."""
    return isinstance(weight, SparseSemiStructuredTensor)


def compressed(weight: Any) -> tuple[Tensor, Tensor]:
    """(values, index) as `ops.compress_sparse24` returns them, of a semi-structured weight."""
    if weight.meta is None:
        return compress_sparse24(weight.to_dense())
    meta, rows = weight.meta, weight.shape[0]
    offsets = _calculate_meta_reordering_scatter_offsets(
        rows, meta.shape[1], meta.dtype, meta.device
    )
    in_order = meta.reshape(-1).gather(0, offsets).view(rows, -1)
    return weight.packed, in_order.view(torch.int32).t().contiguous()


def linear(input: Tensor, weight: Any, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear` with a semi-structured weight."""
    return product(input, *compressed(weight), bias)


def product(input: Tensor, values: Tensor, index: Tensor, bias: Tensor | None) -> Tensor:
    """The product with a weight whose compressed form is kept."""
    return torch.ops.wavecast.matmul_sparse24(input, values, index, bias)


def why_not_linear(
    input: Tensor, weight: Any, bias: Tensor | None = None, *, in_graph: bool = True
) -> str | None:
    """The reason against a call of `linear`; `in_graph` where weights without `meta` cannot be
    expanded."""
    dtypes = {tensor.dtype for tensor in (input, weight)}
    if bias is not None and not bias.is_floating_point():
        return "a bias of integers"
    if len(dtypes) > 1 or dtypes - {torch.float16, torch.bfloat16}:
        return "dtypes " + ", ".join(sorted(str(d).removeprefix("torch.") for d in dtypes))
    if weight.packed is None or weight.shape[1] % _COLUMNS:
        return "a transposed weight" if weight.packed is None else "columns no multiple of 32"
    if in_graph and weight.meta is None:
        return "compressed for another library: ops.replace before torch.compile"
    if weight.requires_grad and torch.is_grad_enabled():
        return "the weight requires a gradient"
    if not input.numel():
        return "a tensor is empty"
    return _no_instructions(input.is_cuda)


@torch.compiler.assume_constant_result
def _no_instructions(on_gpu: bool) -> str | None:
    """The reason against the GPU at hand."""
    if gpu.emulated is None and not on_gpu:
        return None
    device = gpu.launching()
    runs = device.target in operator("matmul_sparse24").targets
    return None if runs else f"{device.id} has no sparse matrix instructions"


__all__ = ["compressed", "is_semi_structured", "linear", "product", "why_not_linear"]
