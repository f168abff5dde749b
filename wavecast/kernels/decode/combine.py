"""Taking the tokens of a sequence in parts: how many, and joining what workgroups computed of
each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip

_MOST_SPLITS: Final = 256
_START: Final = 3.0
"""Loads one after the other before a workgroup's first tile: length, block number, tokens."""
_HELD = (2, 32)
"""Elements of parts that a lane of the reduction has under way: fewest and most."""


@triton.jit
def decode_reduce_kernel(
    part_ptr, stat_ptr, out_ptr, rows, row_stride,
    HEAD: tl.constexpr, SPLITS: tl.constexpr, PADDED_SPLITS: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Joins the SPLITS parts of ROWS rows, COLUMNS elements of each and PARTS parts at a time:
    `part_ptr` [rows, SPLITS, HEAD] are sums weighted with exp2(score - most), `stat_ptr`
    [2, rows, SPLITS] `most` and the sum of weights."""
    program = tl.program_id(0)
    across: tl.constexpr = (HEAD + COLUMNS - 1) // COLUMNS  # pyright: ignore[reportAssignmentType]
    row = program // across * ROWS + tl.arange(0, ROWS)
    place = program % across * COLUMNS + tl.arange(0, COLUMNS)
    valid = row < rows
    split = tl.arange(0, PADDED_SPLITS)
    given = valid[:, None] & (split < SPLITS)[None, :]
    stats = stat_ptr + row[:, None] * SPLITS + split[None, :]
    peaks = tl.load(stats, mask=given, other=float("-inf"))
    most = tl.max(peaks, axis=1)
    most = tl.where(most == float("-inf"), 0.0, most)
    sums = tl.load(stats + rows * SPLITS, mask=given, other=0.0)
    total = tl.sum(sums * tl.exp2(peaks - most[:, None]), axis=1)
    number = tl.arange(0, PARTS)
    at_row = row * SPLITS
    if WIDE:
        at_row = at_row.to(tl.int64)
    found = tl.zeros((ROWS, PARTS, COLUMNS), tl.float32)
    for start in range(0, SPLITS, PARTS):
        at = start + number
        here = valid[:, None] & (at < SPLITS)[None, :]
        from_stat = stat_ptr + row[:, None] * SPLITS + at[None, :]
        peak = tl.load(from_stat, mask=here, other=float("-inf"))
        weight = tl.exp2(peak - most[:, None])
        from_part = (at_row[:, None] + at[None, :])[:, :, None] * HEAD + place[None, None, :]
        kept = here[:, :, None] & (place < HEAD)[None, None, :]
        found += tl.load(part_ptr + from_part, mask=kept, other=0.0) * weight[:, :, None]
    joined = tl.sum(found, axis=1) / tl.where(total > 0, total, 1.0)[:, None]  # pyright: ignore[reportOperatorIssue]
    to_row = out_ptr + row.to(tl.int64)[:, None] * row_stride + place[None, :]
    kept = valid[:, None] & (place < HEAD)[None, :]
    tl.store(to_row, joined.to(out_ptr.dtype.element_ty), mask=kept)


def splits(
    device: Device,
    programs: int,
    tokens: int,
    *,
    beside: int,
    token_bytes: float,
    token_flops: float,
    result_bytes: float,
    least: int,
) -> int:
    """In how many parts the tokens of a sequence take the least time, with `programs` that each
    walk `tokens` otherwise, `beside` of them at once on a unit; each token costs a program
    `token_bytes` of memory and `token_flops` of 16-bit matrix products, each part `result_bytes`
    that are written and read again. No part has fewer than `least` tokens.

    More parts fill the GPU, or end together, where fewer have less to write and join.
    """
    most = max(1, min(_MOST_SPLITS, tokens // least))
    try:
        chip = Chip.of(device)
        rate = _EFFICIENCY * chip.matrix_rate("bf16") * chip.clock
    except MissingFact:
        return min(most, max(1, beside * device.compute_units // programs))
    slots = beside * chip.units
    token = max(token_bytes * slots / chip.hbm, token_flops * beside / rate)
    start = _START * chip.latency["hbm"]

    def seconds(parts: int) -> float:
        rounds = -(-programs * parts // slots)
        walked = rounds * (-(-tokens // parts) * token + start)
        if parts == 1:
            return walked
        return walked + chip.launch + 2.0 * programs * parts * result_bytes / chip.hbm

    return min(range(1, most + 1), key=seconds)


_EFFICIENCY: Final = 0.4
"""Share of its matrix rate that a unit with one workgroup reaches; from executed samples."""


def reduce_parts(part: torch.Tensor, stat: torch.Tensor, out: torch.Tensor) -> None:
    """Join `part` [rows, splits, head] with `stat` [2, rows, splits] into `out` [rows, head]."""
    rows, count, head = part.shape

    def grid(settings: Settings) -> tuple[int, ...]:
        across = triton.cdiv(head, settings["COLUMNS"])
        return (triton.cdiv(rows, settings["ROWS"]) * across,)

    wide = checks.wide(part)
    launch(
        decode_reduce_kernel,
        grid,
        (part, stat, out, rows, out.stride(0)),
        REDUCE,
        {"rows": rows, "head": head, "splits": count, "wide": wide},
        HEAD=head,
        SPLITS=count,
        PADDED_SPLITS=triton.next_power_of_2(count),
        WIDE=wide,
    )


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    padded, parts = (triton.next_power_of_2(problem[name]) for name in ("head", "splits"))
    return {
        "ROWS": (1, 2, 4, 8),
        "COLUMNS": tuple(size for size in (64, 128, 256, 512) if size <= max(64, padded)),
        "PARTS": tuple(size for size in (2, 4, 8, 16, 32, 64) if size <= parts),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    threads = device.wave_lanes * settings["num_warps"]
    held = settings["ROWS"] * settings["PARTS"] * settings["COLUMNS"] / threads
    return _HELD[0] <= held <= _HELD[1]


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, head, count = problem["rows"], problem["head"], problem["splits"]
    steps = triton.cdiv(count, settings["PARTS"])
    streamed = estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(rows, settings["ROWS"]) * triton.cdiv(head, settings["COLUMNS"]),
        read=4.0 * rows * count * (head + 2),
        written=2.0 * rows * head,
        elements=settings["ROWS"] * settings["PARTS"] * settings["COLUMNS"],
        operations=10.0 + 4.0 * steps,
        held=2.0,
    )
    # each step waits for its loads
    return streamed + steps * Chip.of(device).latency["l2"]


REDUCE = Space(
    kernel="decode_reduce_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("rows",),
)


__all__ = ["REDUCE", "decode_reduce_kernel", "reduce_parts", "splits"]
