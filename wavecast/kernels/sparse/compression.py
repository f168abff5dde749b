"""Weights of which at most two in every four are not zero, and their compressed form.

Compressed, a group of four elements is the two that are kept and four bits, their positions in it:
the first in the low two bits, the second, which is larger, in the others. Which positions stand for
a group with fewer elements that are not zero is PyTorch's choice
(`torch.sparse._semi_structured_conversions`).
"""

from typing import Final

import torch
from torch import Tensor

from wavecast.kernels import checks

GROUP: Final = 4
"""Elements of which two are kept."""
KEPT: Final = 2
INDEX_BITS: Final = 4
"""Bits of the index of a group."""
WORD_DEPTH: Final = 32
"""Elements of a row whose index is one int32."""
POSITIONS: Final = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
"""Positions of the kept elements that a group can have."""


def prune_sparse24(weight: Tensor) -> Tensor:
    """`weight` [..., K] with the two elements of smaller magnitude of every four set to zero.

    Of equal magnitudes those are kept that `torch.topk` leaves, as by PyTorch's
    `WeightNormSparsifier` with two zeros per block of (1, 4); NaN is larger than all. K is a
    multiple of 4. Any dtype; differentiable, with the gradient of what is kept. Raises
    ArgumentError.
    """
    name = "prune_sparse24"
    columns = weight.shape[-1] if weight.dim() else 0
    checks.require(weight.dim() > 0, name, "weight is a scalar")
    checks.require(columns % GROUP == 0, name, f"weight has {columns} columns, no multiple of 4")
    groups = weight.unflatten(-1, (columns // GROUP, GROUP))
    wide = torch.promote_types(weight.dtype, torch.float32) if weight.element_size() > 1 else None
    magnitudes = groups.detach().to(wide or torch.float32).abs()  # exact
    smallest = torch.topk(magnitudes, GROUP - KEPT, dim=-1, largest=False).indices
    dropped = torch.zeros_like(magnitudes, dtype=torch.bool).scatter(-1, smallest, True)
    zero = torch.zeros((), dtype=weight.dtype, device=weight.device)
    return torch.where(dropped, zero, groups).flatten(-2)


def compress_sparse24(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(values [N, K / 2] of the dtype of `weight`, index [K / 32, N] of int32) of `weight` [N, K],
    of which at most two in every four elements of a row are not zero; K is a multiple of 32.

    The index of eight groups of four is one integer, the first group's in its low four bits; those
    of adjacent rows are adjacent, as lanes read them. Differentiable in `weight`. Looks at the
    data. Raises ArgumentError, also for a group with more elements (`prune_sparse24`).
    """
    name = "compress_sparse24"
    checks.require(weight.dim() == 2, name, f"weight has {weight.dim()} dimensions, not 2")
    rows, columns = weight.shape
    checks.require(
        columns % WORD_DEPTH == 0, name, f"weight has {columns} columns, no multiple of 32"
    )
    groups = weight.reshape(rows, columns // GROUP, GROUP)
    there = groups.detach().to(torch.float32) != 0  # NaN is not zero, fp8 has no comparisons
    is_sparse = not bool((there.sum(-1) > KEPT).any())
    checks.require(is_sparse, name, "more than 2 of 4 elements are not zero: prune_sparse24 first")
    first, second = _positions(there)
    values = _gather(groups, torch.stack((first, second), -1))
    return values.reshape(rows, columns // 2), _packed(first | second << 2).T.contiguous()


def expand_sparse24(values: Tensor, index: Tensor) -> Tensor:
    """The weight [N, K] of `values` [N, K / 2] and `index` [K / 32, N] of int32. Differentiable
    in `values`. Raises ArgumentError."""
    name = "expand_sparse24"
    checks.dtype_in(name, "index", index, (torch.int32,))
    checks.require(values.dim() == 2, name, f"values has {values.dim()} dimensions, not 2")
    rows, kept = values.shape
    checks.shape_is(name, "index", index, [2 * kept // WORD_DEPTH, rows])
    checks.require(kept % (WORD_DEPTH // 2) == 0, name, f"values has {kept} columns")
    columns = dense_columns(index)
    narrow = values.element_size() == 1  # fp8 has no scatter
    raw = values.view(torch.uint8) if narrow else values
    dense = torch.zeros((rows, 2 * kept), dtype=raw.dtype, device=raw.device)
    dense = dense.scatter(1, columns, raw)
    return dense.view(values.dtype) if narrow else dense  # a view in a dtype has no gradient


def dense_columns(index: Tensor) -> Tensor:
    """The columns [N, K / 2] of the weight that an `index` [K / 32, N] keeps, of int64."""
    shifts = torch.arange(0, 32, 2, dtype=torch.int32, device=index.device)
    positions = (index.T.unsqueeze(-1) >> shifts & 3).flatten(1).long()
    starts = torch.arange(positions.shape[1], device=index.device) // KEPT * GROUP
    return positions + starts


def _positions(there: Tensor) -> tuple[Tensor, Tensor]:
    """The positions of the kept elements of groups [..., 4] of at most two that are `there`, by
    PyTorch's rule: with fewer, the last, but (1, 2) and (0, 2) for one at 1 and at 0."""
    m0, m1, _, m3 = there.unbind(-1)
    low, high = ~m0 & m1, ~m0 & ~m1
    first = low.long() | high.long() << 1
    second = ((m0 & m1) | high | m3).long() | (low | ~m1).long() << 1
    return first, second


def _gather(groups: Tensor, positions: Tensor) -> Tensor:
    if groups.element_size() > 1:
        return groups.gather(-1, positions)
    return groups.view(torch.uint8).gather(-1, positions).view(groups.dtype)


def _packed(codes: Tensor) -> Tensor:
    """Codes of four bits [rows, groups] as int32, eight to a word."""
    per_word = 32 // INDEX_BITS
    shifts = INDEX_BITS * torch.arange(per_word, device=codes.device)
    words = (codes.unflatten(-1, (-1, per_word)) << shifts).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
