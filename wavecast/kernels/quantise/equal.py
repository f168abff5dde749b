"""When quantised results are right: bit by bit, since kernels round as PyTorch does."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from wavecast.kernels.operator import Sizes


def same_codes(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], sizes: Sizes) -> str:
    """What differs between codes and scales, "" when nothing does; every NaN equals another."""
    for place, (mine, right) in enumerate(zip(got, expected, strict=True)):
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return (
                f"result {place} is {mine.dtype} {tuple(mine.shape)}, "
                f"expected {right.dtype} {tuple(right.shape)}"
            )
        wrong = mine.double() != right.double()
        wrong &= ~(mine.double().isnan() & right.double().isnan())
        if bool(wrong.any()):
            first = tuple(wrong.nonzero()[0].tolist())
            return (
                f"result {place}: {int(wrong.sum())} of {wrong.numel()} differ, first at {first}: "
                f"{float(mine[first])}, expected {float(right[first])}"
            )
    return ""


__all__ = ["same_codes"]
