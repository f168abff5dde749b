"""Kernels that find which tokens of a row of logits pass top-k, top-p and min-p, without sorting.

Logits are compared as integers of the same order (`ordered`), so that a threshold is found bit by
bit, exactly. To have few to look at, one pass keeps the largest of each of some thousand columns:
the k-th largest of these is no greater than the k-th largest of all (`summary_kernel`). The tokens
above it, mostly few more than k, are counted and gathered in their order by as many programs as a
row has parts (`count_kernel`, `gather_kernel`); everything after that works on them
(`choose_kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.space import Problem, Settings, Space

_LOG2_E = tl.constexpr(1.4426950408889634)
_LEAST = tl.constexpr(-(2**31))
_SPLIT = 8192
"""Tokens of a row that a program takes."""
_BEST = 8192
"""Columns of a row whose largest are kept."""
MOST = 1 << 21
"""The largest vocabulary: beyond it the columns do not fit into registers."""


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
def summary_kernel(
    logits_ptr, temperature_ptr, k_ptr, best_ptr, sums_ptr, vocabulary, stride,
    FILTER_K: tl.constexpr, SPLIT: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Of each part of `SPLIT` tokens of a row: the largest logits of `COLUMNS` columns, in
    `best_ptr` [rows, parts, COLUMNS]; the largest of all and the sum of weights, in `sums_ptr`
    [rows, parts, 2]."""
    parts = tl.cdiv(vocabulary, SPLIT)
    row = (tl.program_id(0) // parts).to(tl.int64)
    start = tl.program_id(0) % parts * SPLIT
    down = tl.arange(0, SPLIT // COLUMNS)[:, None]
    across = tl.arange(0, COLUMNS)[None, :]
    along = down * COLUMNS + across
    slope, _, _ = wanted(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    place = logits_ptr + row * stride + start + along
    inside = along < vocabulary - start
    x = tl.load(place, mask=inside, other=float("-inf")).to(tl.float32)
    best = tl.max(x, axis=0)
    top = tl.max(best, axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)
    shares = tl.where(inside, weight(x, base, slope), 0.0)
    total = tl.sum(tl.sum(shares, axis=0), axis=0)
    tl.store(best_ptr + tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), best)
    tl.store(sums_ptr + 2 * tl.program_id(0), top)
    tl.store(sums_ptr + 2 * tl.program_id(0) + 1, total)


@triton.jit
def count_kernel(
    logits_ptr, temperature_ptr, k_ptr, p_ptr, best_ptr, sums_ptr, bounds_ptr, counts_ptr,
    vocabulary, stride,
    FILTER_K: tl.constexpr, FILTER_P: tl.constexpr,
    SPLIT: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """How many tokens of each part may pass, in `counts_ptr` [rows, parts]. In `bounds_ptr`
    [rows, 3]: the bound they reach, as `ordered` (its bits), the largest logit of the row and the
    sum of all weights. Each program of a row finds the bound for itself. `PARTS`: the parts,
    rounded up to a power of two."""
    parts = tl.cdiv(vocabulary, SPLIT)
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    slope, count, _ = wanted(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    each = tl.arange(0, PARTS)
    there = each < parts
    tops = tl.load(sums_ptr + (row * parts + each) * 2, mask=there, other=float("-inf"))
    sums = tl.load(sums_ptr + (row * parts + each) * 2 + 1, mask=there, other=0.0)
    top = tl.max(tops, axis=0)
    total = tl.sum(tl.where(tops > float("-inf"), sums * weight(tops, top, slope), 0.0), axis=0)
    along = tl.arange(0, PARTS * COLUMNS)
    known = along < parts * COLUMNS
    best = tl.load(best_ptr + row * parts * COLUMNS + along, mask=known, other=float("-inf"))
    # With all to be kept, no bound has enough above it, and the least remains.
    bound = tl.full((), _LEAST, tl.int32)
    keys = ordered(best)
    for bit in range(32):
        higher = bound ^ (1 << (31 - bit))
        enough = tl.sum((known & (keys >= higher)).to(tl.int32), axis=0) >= count
        bound = tl.where(enough & (count < vocabulary), higher, bound)
    if FILTER_P:
        # Tokens of less than (1 - p) / vocabulary each are less than 1 - p together.
        spare = 1.0 - tl.load(p_ptr + row).to(tl.float32)
        free = (spare > 0.0) & (slope > 0.0) & (count == vocabulary)
        reach = tl.log2(tl.where(free, total * spare / vocabulary, 1.0)) - 0.01
        bound = tl.where(free, ordered(top + reach / tl.where(free, slope, 1.0)), bound)
    start = part * SPLIT
    own = tl.arange(0, SPLIT)
    inside = own < vocabulary - start
    x = tl.load(logits_ptr + row * stride + start + own, mask=inside, other=float("-inf"))
    taken = inside & (ordered(x.to(tl.float32)) >= bound)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(taken.to(tl.int32), axis=0))
    if part == 0:
        tl.store(bounds_ptr + 3 * row, bound.to(tl.float32, bitcast=True))
        tl.store(bounds_ptr + 3 * row + 1, top)
        tl.store(bounds_ptr + 3 * row + 2, total)


@triton.jit
def gather_kernel(
    logits_ptr, bounds_ptr, counts_ptr, values_ptr, tokens_ptr, found_ptr, vocabulary, stride,
    SPLIT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The tokens of a row that may pass, in their order: `values_ptr` and `tokens_ptr`
    [rows, vocabulary], and how many in `found_ptr` [rows]."""
    parts = tl.cdiv(vocabulary, SPLIT)
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    each = tl.arange(0, PARTS)
    counts = tl.load(counts_ptr + row * parts + each, mask=each < parts, other=0)
    before = tl.sum(tl.where(each < part, counts, 0), axis=0)
    bound = tl.load(bounds_ptr + 3 * row).to(tl.int32, bitcast=True)
    start = part * SPLIT
    own = tl.arange(0, SPLIT)
    inside = own < vocabulary - start
    x = tl.load(logits_ptr + row * stride + start + own, mask=inside, other=float("-inf"))
    x = x.to(tl.float32)
    taken = inside & (ordered(x) >= bound)
    place = before + tl.cumsum(taken.to(tl.int32), axis=0) - 1
    tl.store(values_ptr + row * vocabulary + place, x, mask=taken)
    tl.store(tokens_ptr + row * vocabulary + place, start + own, mask=taken)
    if part == 0:
        tl.store(found_ptr + row, tl.sum(counts, axis=0))


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
    values_ptr, tokens_ptr, found_ptr, bounds_ptr, temperature_ptr, k_ptr, p_ptr, min_ptr,
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
    found = tl.load(found_ptr + row)
    top = tl.load(bounds_ptr + 3 * row + 1)
    total = tl.load(bounds_ptr + 3 * row + 2)
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


def split(vocabulary: int) -> dict[str, int]:
    """`SPLIT`, `COLUMNS` and `PARTS` of the kernels for a vocabulary."""
    tokens = max(512, min(_SPLIT, triton.next_power_of_2(vocabulary)))
    parts = triton.next_power_of_2(triton.cdiv(vocabulary, tokens))
    return {"SPLIT": tokens, "COLUMNS": max(32, min(512, _BEST // parts)), "PARTS": parts}


def _part_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del problem, device
    return {"num_warps": (4, 8, 16), "num_stages": (1,)}


def _part_seconds(operations: float, passes: int) -> Callable[..., float]:
    """`operations` per token of a part, and as many again for each of `passes` over the largest."""

    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        rows, vocabulary = problem["rows"], problem["vocabulary"]
        shape = split(vocabulary)
        elements = max(shape["SPLIT"], shape["PARTS"] * shape["COLUMNS"] if passes else 0)
        return estimates.streaming(
            device,
            settings,
            workgroups=rows * triton.cdiv(vocabulary, shape["SPLIT"]),
            read=rows * vocabulary * problem["bytes"],
            written=0.0,
            elements=elements,
            operations=operations + 3.0 * passes,
            held=3.0,
        )

    return seconds


def _part_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    shape = split(problem["vocabulary"])
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    return max(shape["SPLIT"], shape["PARTS"] * shape["COLUMNS"]) <= 32 * lanes


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


def _part_space(kernel: str, operations: float, passes: int = 0) -> Space:
    return Space(
        kernel=kernel,
        axes=_part_axes,
        fits=_part_fits,
        seconds=_part_seconds(operations, passes),
        classes=("rows", "vocabulary"),
    )


SUMMARY = _part_space("summary_kernel", 14.0)
COUNT = _part_space("count_kernel", 6.0, 32)
GATHER = _part_space("gather_kernel", 20.0)
CHOOSE = Space(
    kernel="choose_kernel",
    axes=_choose_axes,
    seconds=_choose_seconds,
    classes=("rows", "vocabulary"),
)
MASK = Space(
    kernel="mask_kernel", axes=_mask_axes, seconds=_mask_seconds, classes=("rows", "vocabulary")
)

__all__ = [
    "CHOOSE",
    "COUNT",
    "GATHER",
    "MASK",
    "MOST",
    "SUMMARY",
    "choose_kernel",
    "count_kernel",
    "gather_kernel",
    "mask_kernel",
    "split",
    "summary_kernel",
]
