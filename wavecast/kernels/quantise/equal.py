"""When quantised results are right: bit by bit, since kernels round as PyTorch does."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from wavecast.kernels.operator import Sizes


def same_codes(got: Sequence[Tensor], expected: Sequence[Tensor], sizes: Sizes) -> str:
    """What differs between codes and scales, "" when nothing does; every NaN equals another."""
    for index, (mine, right) in enumerate(zip(got, expected, strict=True)):
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return (
                f"result {index} is {mine.dtype} {tuple(mine.shape)}, "
                f"expected {right.dtype} {tuple(right.shape)}"
            )
        wrong = mine.double() != right.double()
        wrong &= ~(mine.double().isnan() & right.double().isnan())
        if bool(wrong.any()):
            first = tuple(wrong.nonzero()[0].tolist())
            return (
                f"result {index}: {int(wrong.sum())} of {wrong.numel()} differ, first at {first}: "
                f"{float(mine[first])}, expected {float(right[first])}"
            )
    return ""


def with_format(to: str, *given: Sizes) -> tuple[Sizes, ...]:
    """Sizes of calls, each with the format `to` to quantise to."""
    return tuple({**one, "to": to} for one in given)
