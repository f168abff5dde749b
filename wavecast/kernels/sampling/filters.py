"""Kernels that find which tokens of a row of logits pass top-k, top-p and min-p, without sorting.

Logits are compared as integers of the same order (`ordered`), so that a threshold is found bit by
bit, exactly. To have few to look at, one pass keeps the largest of each of `BLOCK` columns: the
k-th largest of these is no greater than the k-th largest of all. The tokens above it, mostly few
more than k, are gathered in their order; everything after that works on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.space import Problem, Settings, Space

_LOG2_E = tl.constexpr(1.4426950408889634)
_LEAST = tl.constexpr(-(2**31))
_TURN = 2e-6
"""Seconds a program waits for one block of logits: blocks of a row are one after another."""


@triton.jit
def ordered(x):
    """float32 as int32 of the same order."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def weight(x, top, slope):
    """e to the power of (x - top) / temperature, for `slope` log2(e) / temperature."""
    return tl.exp2((x - top) * slope)


@triton.jit
def wanted(temperature_ptr, k_ptr, row, vocabulary, FILTER_K: tl.constexpr):
    """(slope, tokens to keep, greedy): a temperature of 0 keeps the largest only."""
    temperature = tl.load(temperature_ptr + row).to(tl.float32)
    greedy = temperature <= 0.0
    slope = tl.where(greedy, 0.0, _LOG2_E / tl.where(greedy, 1.0, temperature))
    count = vocabulary
    if FILTER_K:
        k = tl.load(k_ptr + row).to(tl.int32)
        count = tl.where((k <= 0) | (k > vocabulary), vocabulary, k)
    return slope, tl.where(greedy, 1, count), greedy


@triton.jit
def gather_kernel(
    logits_ptr, temperature_ptr, k_ptr, p_ptr, values_ptr, tokens_ptr, counts_ptr, sums_ptr,
    vocabulary, stride,
    FILTER_K: tl.constexpr, FILTER_P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The tokens of a row that may pass, in their order: `values_ptr` and `tokens_ptr`
    [rows, vocabulary], how many in `counts_ptr` [rows]; in `sums_ptr` [rows, 2] the largest logit
    and the sum of all weights."""
    row = tl.program_id(0).to(tl.int64)
    along = tl.arange(0, BLOCK)
    logits_ptr += row * stride
    values_ptr += row * vocabulary
    tokens_ptr += row * vocabulary
    slope, count, _ = wanted(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        inside = along < vocabulary - start
        x = tl.load(logits_ptr + start + along, mask=inside, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(best, x)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * weight(best, base, slope) + tl.where(inside, weight(x, base, slope), 0.0)
        best = higher
    top = tl.max(best)
    everything = tl.sum(total * weight(best, top, slope))
    tl.store(sums_ptr + 2 * row, top)
    tl.store(sums_ptr + 2 * row + 1, everything)
    cut = _LEAST
    if count < vocabulary:
        keys = ordered(best)
        for bit in range(32):
            higher_cut = cut ^ (1 << (31 - bit))
            if tl.sum((keys >= higher_cut).to(tl.int32)) >= count:
                cut = higher_cut
    elif FILTER_P:
        # Tokens of less than (1 - p) / vocabulary each are less than 1 - p together.
        spare = 1.0 - tl.load(p_ptr + row).to(tl.float32)
        if (spare > 0.0) & (slope > 0.0):
            cut = ordered(top + (tl.log2(everything * spare / vocabulary) - 0.01) / slope)
    found = 0
    for start in range(0, vocabulary, BLOCK):
        inside = along < vocabulary - start
        x = tl.load(logits_ptr + start + along, mask=inside, other=float("-inf")).to(tl.float32)
        taken = inside & (ordered(x) >= cut)
        here = tl.sum(taken.to(tl.int32))
        if here > 0:  # pyright: ignore[reportOperatorIssue]
            place = found + tl.cumsum(taken.to(tl.int32)) - 1
            tl.store(values_ptr + place, x, mask=taken)
            tl.store(tokens_ptr + place, start + along, mask=taken)
        found += here  # pyright: ignore[reportOperatorIssue]
    tl.store(counts_ptr + row, found)


@triton.jit
def counted(held, values_ptr, found, cut, BLOCK: tl.constexpr):
    """How many of the gathered logits are at least `cut`; `held` are the first of them."""
    along = tl.arange(0, BLOCK)
    total = tl.sum(((ordered(held) >= cut) & (along < found)).to(tl.int32))
    for start in range(BLOCK, found, BLOCK):
        inside = along < found - start
        x = tl.load(values_ptr + start + along, mask=inside, other=float("-inf"))
        total += tl.sum((inside & (ordered(x) >= cut)).to(tl.int32))
    return total


@triton.jit
def weighed(held, values_ptr, found, cut, top, slope, BLOCK: tl.constexpr):
    """What the gathered logits that are at least `cut` weigh."""
    along = tl.arange(0, BLOCK)
    inside = (along < found) & (ordered(held) >= cut)
    total = tl.sum(tl.where(inside, weight(held, top, slope), 0.0))
    for start in range(BLOCK, found, BLOCK):
        inside = along < found - start
        x = tl.load(values_ptr + start + along, mask=inside, other=float("-inf"))
        inside = inside & (ordered(x) >= cut)
        total += tl.sum(tl.where(inside, weight(x, top, slope), 0.0))
    return total


@triton.jit(do_not_specialize=["seed"])
def choose_kernel(
    values_ptr, tokens_ptr, counts_ptr, sums_ptr, temperature_ptr, k_ptr, p_ptr, min_ptr,
    cuts_ptr, chosen_ptr, vocabulary, seed,
    FILTER_K: tl.constexpr, FILTER_P: tl.constexpr, FILTER_MIN: tl.constexpr,
    CHOOSE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The threshold of a row as `ordered`, in `cuts_ptr` [rows], or with `CHOOSE` a token drawn
    from those above it, in `chosen_ptr` [rows]."""
    row = tl.program_id(0).to(tl.int64)
    along = tl.arange(0, BLOCK)
    values_ptr += row * vocabulary
    tokens_ptr += row * vocabulary
    slope, count, greedy = wanted(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    found = tl.load(counts_ptr + row)
    top = tl.load(sums_ptr + 2 * row)
    total = tl.load(sums_ptr + 2 * row + 1)
    held = tl.load(values_ptr + along, mask=along < found, other=float("-inf"))
    cut = _LEAST
    if count < vocabulary:
        for bit in range(32):
            higher = cut ^ (1 << (31 - bit))
            if counted(held, values_ptr, found, higher, BLOCK) >= count:
                cut = higher
        total = weighed(held, values_ptr, found, cut, top, slope, BLOCK)
    if FILTER_P:
        p = tl.load(p_ptr + row).to(tl.float32)
        if p < 1.0:
            least = cut
            cut = _LEAST
            for bit in range(32):
                higher = cut ^ (1 << (31 - bit))
                above = tl.maximum(higher, least)
                if weighed(held, values_ptr, found, above, top, slope, BLOCK) >= p * total:
                    cut = higher
            cut = tl.minimum(tl.maximum(cut, least), ordered(top))
    if FILTER_MIN:
        ratio = tl.load(min_ptr + row).to(tl.float32)
        if (ratio > 0.0) & (slope > 0.0):
            cut = tl.maximum(cut, ordered(top + tl.log2(tl.minimum(ratio, 1.0)) / slope))
    if CHOOSE:
        drawn = tl.rand(seed, row)
        goal = drawn * weighed(held, values_ptr, found, cut, top, slope, BLOCK)
        goal = tl.where(greedy, 0.0, goal)
        before = 0.0
        first = found
        last = 0
        for start in range(0, found, BLOCK):
            inside = along < found - start
            x = tl.load(values_ptr + start + along, mask=inside, other=float("-inf"))
            inside = inside & (ordered(x) >= cut)
            share = tl.where(inside, weight(x, top, slope), 0.0)
            reached = before + tl.cumsum(share)
            hit = inside & (share > 0.0) & (reached > goal)
            first = tl.minimum(first, tl.min(tl.where(hit, start + along, found)))
            last = tl.maximum(last, tl.max(tl.where(inside & (share > 0.0), start + along, 0)))
            before += tl.sum(share)  # pyright: ignore[reportOperatorIssue]
        # Where rounding leaves the goal beyond the last sum, the last token has it.
        place = tl.where(first < found, first, last)
        tl.store(chosen_ptr + row, tl.load(tokens_ptr + place, mask=found > 0, other=0))
    else:
        tl.store(cuts_ptr + row, cut)


@triton.jit
def mask_kernel(
    logits_ptr, cuts_ptr, out_ptr, vocabulary, stride,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Logits below their row's threshold become -inf."""
    across = tl.cdiv(vocabulary, BLOCK)
    row = (tl.program_id(0) // across).to(tl.int64)
    start = tl.program_id(0) % across * BLOCK
    along = tl.arange(0, BLOCK)
    inside = along < vocabulary - start
    cut = tl.load(cuts_ptr + row)
    x = tl.load(logits_ptr + row * stride + start + along, mask=inside, other=0.0)
    kept = ordered(x.to(tl.float32)) >= cut
    to = out_ptr + row * vocabulary + start + along
    tl.store(to, tl.where(kept, x, float("-inf")).to(out_ptr.dtype.element_ty), mask=inside)


def _gather_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del device
    columns = max(256, min(8192, triton.next_power_of_2(problem["vocabulary"])))
    blocks = tuple(block for block in (1024, 2048, 4096, 8192) if block <= columns)
    return {"BLOCK": blocks or (columns,), "num_warps": (8, 16), "num_stages": (1,)}


def _gather_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, vocabulary = problem["rows"], problem["vocabulary"]
    turns = triton.cdiv(vocabulary, settings["BLOCK"])
    size = rows * vocabulary * problem["bytes"]
    return 2 * turns * _TURN + estimates.streaming(
        device,
        settings,
        workgroups=rows,
        read=2 * size,
        written=0.0,
        elements=settings["BLOCK"],
        operations=40.0 * turns,
        held=4.0,
    )


def _choose_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del problem, device
    return {"BLOCK": (1024,), "num_warps": (4,), "num_stages": (1,)}


def _choose_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    del problem, settings, device
    return 1e-5


def _mask_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del problem, device
    return {"BLOCK": (1024, 2048, 4096), "num_warps": (4, 8), "num_stages": (1,)}


def _mask_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, vocabulary = problem["rows"], problem["vocabulary"]
    size = rows * vocabulary * problem["bytes"]
    return estimates.streaming(
        device,
        settings,
        workgroups=rows * triton.cdiv(vocabulary, settings["BLOCK"]),
        read=size,
        written=size,
        elements=settings["BLOCK"],
        operations=8.0,
        held=2.0,
    )


GATHER = Space(
    kernel="gather_kernel",
    axes=_gather_axes,
    seconds=_gather_seconds,
    classes=("rows", "vocabulary"),
)
CHOOSE = Space(
    kernel="choose_kernel",
    axes=_choose_axes,
    seconds=_choose_seconds,
    classes=("rows", "vocabulary"),
)
MASK = Space(
    kernel="mask_kernel", axes=_mask_axes, seconds=_mask_seconds, classes=("rows", "vocabulary")
)

__all__ = ["CHOOSE", "GATHER", "MASK", "choose_kernel", "gather_kernel", "mask_kernel"]
