"""What quantisers have in common: blocks of columns, work, and when results are right (bit by bit,
since kernels round as PyTorch does)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Operator, Sizes, Work, streamed


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


def blocks_of(x: Tensor, size: int) -> Tensor:
    """[..., blocks, size]: the last dimension in blocks, with zeros where the last one is cut."""
    blocks = -(-x.shape[-1] // size)
    padded = torch.nn.functional.pad(x, (0, blocks * size - x.shape[-1]))
    return padded.reshape(*x.shape[:-1], blocks, size)


def with_format(to: str, *cases: Sizes) -> tuple[Sizes, ...]:
    """Sizes of calls, each with the format `to` to quantise to."""
    return tuple({**case, "to": to} for case in cases)


def operators(
    fp8: Callable[..., Any], int8: Callable[..., Any], summary: str, cases: tuple[Sizes, ...],
    thorough: tuple[Sizes, ...], shapes: tuple[Sizes, ...], **shared: Any,
) -> tuple[Operator, Operator]:  # fmt: skip
    """Quantisation to fp8, with `thorough` in addition to four `cases` of three formats, and to
    int8. `summary` has {} where the format is."""
    of_fp8 = Operator(
        summary=summary.format("fp8"),
        call=fp8,
        cases=(
            *with_format("float8_e4m3fn", *cases[:2]),
            *with_format("float8_e4m3fnuz", cases[2]),
            *with_format("float8_e5m2", cases[3]),
        ),
        thorough=thorough,
        shapes=(*with_format("float8_e4m3fn", *shapes), *with_format("float8_e4m3fnuz", *shapes)),
        compare=same_codes,
        **shared,
    )
    summary = summary.format("int8")
    int8_only = {"call": int8, "cases": cases, "shapes": shapes, "compare": same_codes}
    return of_fp8, Operator(summary=summary, **int8_only, **shared)


def work(written: Callable[..., float]) -> Callable[..., Work]:
    """What `Operator.work` takes of an operator that reads `rows` x `columns` elements once and
    writes `written(**sizes)` bytes of codes and scales."""

    def case_work(**sizes: Any) -> Work:
        read = streamed(1, 0, 2.0)(**sizes)
        return replace(read, bytes_written=written(**sizes))

    return case_work
