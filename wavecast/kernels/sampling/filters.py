"""Kernels that find which tokens of a row of logits pass top-k, top-p and min-p, without sorting.

Logits are compared as integers of the same order (`ordered`), so that a threshold is found bit by
bit, exactly. To have few to look at, one pass keeps the largest of each of some thousand columns:
the k-th largest of these is at most the k-th largest of all (`summary_kernel`). The tokens
above it, mostly few more than k, are counted and gathered in their order by as many programs as a
row has parts (`count_kernel`, `gather_kernel`); everything after that works on them
(`choose_kernel`).
"""

from typing import Any

import triton
import triton.language as tl

from wavecast.kernels import describe
from wavecast.kernels.describe import Demand, Device, KernelSpec, Problem, Settings

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
def exp_weight(x, row_max, inv_temp):
    """e to the power of (x - top) / temperature, for `inv_temp` log2(e) / temperature."""
    return tl.exp2((x - row_max) * inv_temp)


@triton.jit
def row_options(temperature_ptr, k_ptr, row, vocabulary, FILTER_K: tl.constexpr):
    """(inv_temp, tokens to keep, greedy): a temperature of 0 keeps the largest only."""
    temperature = tl.load(temperature_ptr + row).to(tl.float32)
    greedy = temperature <= 0.0
    inv_temp = tl.where(greedy, 0.0, _LOG2_E / tl.where(greedy, 1.0, temperature))
    count = vocabulary
    if FILTER_K:
        k = tl.load(k_ptr + row).to(tl.int32)
        count = tl.where((k <= 0) | (k > vocabulary), vocabulary, k)
    return inv_temp, tl.where(greedy, 1, count), greedy


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
    tiles_n = tl.arange(0, COLUMNS)[None, :]
    offs = down * COLUMNS + tiles_n
    inv_temp, _, _ = row_options(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    position = logits_ptr + row * stride + start + offs
    mask = offs < vocabulary - start
    x = tl.load(position, mask=mask, other=float("-inf")).to(tl.float32)
    best = tl.max(x, axis=0)
    row_max = tl.max(best, axis=0)
    base = tl.where(row_max == float("-inf"), 0.0, row_max)
    shares = tl.where(mask, exp_weight(x, base, inv_temp), 0.0)
    acc = tl.sum(tl.sum(shares, axis=0), axis=0)
    tl.store(best_ptr + tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), best)
    tl.store(sums_ptr + 2 * tl.program_id(0), row_max)
    tl.store(sums_ptr + 2 * tl.program_id(0) + 1, acc)


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
    inv_temp, count, _ = row_options(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    each = tl.arange(0, PARTS)
    there = each < parts
    tops = tl.load(sums_ptr + (row * parts + each) * 2, mask=there, other=float("-inf"))
    sums = tl.load(sums_ptr + (row * parts + each) * 2 + 1, mask=there, other=0.0)
    row_max = tl.max(tops, axis=0)
    acc = tl.sum(
        tl.where(tops > float("-inf"), sums * exp_weight(tops, row_max, inv_temp), 0.0),
        axis=0,
    )
    offs = tl.arange(0, PARTS * COLUMNS)
    best_mask = offs < parts * COLUMNS
    best = tl.load(best_ptr + row * parts * COLUMNS + offs, mask=best_mask, other=float("-inf"))
    # With all to be kept, no bound has enough above it, and the least remains.
    bound = tl.full((), _LEAST, tl.int32)
    keys = ordered(best)
    for bit in range(32):
        higher = bound ^ (1 << (31 - bit))
        enough = tl.sum((best_mask & (keys >= higher)).to(tl.int32), axis=0) >= count
        bound = tl.where(enough & (count < vocabulary), higher, bound)
    if FILTER_P:
        # Tokens of less than (1 - p) / vocabulary each are less than 1 - p together.
        spare = 1.0 - tl.load(p_ptr + row).to(tl.float32)
        free = (spare > 0.0) & (inv_temp > 0.0) & (count == vocabulary)
        reach = tl.log2(tl.where(free, acc * spare / vocabulary, 1.0)) - 0.01
        bound = tl.where(free, ordered(row_max + reach / tl.where(free, inv_temp, 1.0)), bound)
    start = part * SPLIT
    offs = tl.arange(0, SPLIT)
    mask = offs < vocabulary - start
    x = tl.load(logits_ptr + row * stride + start + offs, mask=mask, other=float("-inf"))
    survivors = mask & (ordered(x.to(tl.float32)) >= bound)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(survivors.to(tl.int32), axis=0))
    if part == 0:
        tl.store(bounds_ptr + 3 * row, bound.to(tl.float32, bitcast=True))
        tl.store(bounds_ptr + 3 * row + 1, row_max)
        tl.store(bounds_ptr + 3 * row + 2, acc)


@triton.jit
def gather_kernel(
    logits_ptr, bounds_ptr, counts_ptr, values_ptr, tokens_ptr, num_found_ptr, vocabulary, stride,
    SPLIT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The tokens of a row that may pass, in their order: `values_ptr` and `tokens_ptr`
    [rows, vocabulary], and how many in `found_ptr` [rows]."""
    parts = tl.cdiv(vocabulary, SPLIT)
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    each = tl.arange(0, PARTS)
    counts = tl.load(counts_ptr + row * parts + each, mask=each < parts, other=0)
    sum_before = tl.sum(tl.where(each < part, counts, 0), axis=0)
    bound = tl.load(bounds_ptr + 3 * row).to(tl.int32, bitcast=True)
    start = part * SPLIT
    offs = tl.arange(0, SPLIT)
    mask = offs < vocabulary - start
    x = tl.load(logits_ptr + row * stride + start + offs, mask=mask, other=float("-inf"))
    x = x.to(tl.float32)
    survivors = mask & (ordered(x) >= bound)
    position = sum_before + tl.cumsum(survivors.to(tl.int32), axis=0) - 1
    tl.store(values_ptr + row * vocabulary + position, x, mask=survivors)
    tl.store(tokens_ptr + row * vocabulary + position, start + offs, mask=survivors)
    if part == 0:
        tl.store(num_found_ptr + row, tl.sum(counts, axis=0))


@triton.jit
def count_kept(head, values_ptr, num_found, cut, BLOCK: tl.constexpr):
    """How many of the gathered logits are at least `cut`; `head` are the first of them."""
    offs = tl.arange(0, BLOCK)
    acc = tl.sum(((ordered(head) >= cut) & (offs < num_found)).to(tl.int32))
    for start in range(BLOCK, num_found, BLOCK):
        mask = offs < num_found - start
        x = tl.load(values_ptr + start + offs, mask=mask, other=float("-inf"))
        acc += tl.sum((mask & (ordered(x) >= cut)).to(tl.int32))
    return acc


@triton.jit
def sum_weights(head, values_ptr, num_found, cut, row_max, inv_temp, BLOCK: tl.constexpr):
    """What the gathered logits that are at least `cut` weigh."""
    offs = tl.arange(0, BLOCK)
    mask = (offs < num_found) & (ordered(head) >= cut)
    acc = tl.sum(tl.where(mask, exp_weight(head, row_max, inv_temp), 0.0))
    for start in range(BLOCK, num_found, BLOCK):
        mask = offs < num_found - start
        x = tl.load(values_ptr + start + offs, mask=mask, other=float("-inf"))
        mask = mask & (ordered(x) >= cut)
        acc += tl.sum(tl.where(mask, exp_weight(x, row_max, inv_temp), 0.0))
    return acc


@triton.jit(do_not_specialize=["seed"])
def choose_kernel(
    values_ptr, tokens_ptr, num_found_ptr, bounds_ptr, temperature_ptr, k_ptr, p_ptr, min_ptr,
    cuts_ptr, token_ptr, vocabulary, seed,
    FILTER_K: tl.constexpr, FILTER_P: tl.constexpr, FILTER_MIN: tl.constexpr,
    CHOOSE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The threshold of a row as `ordered`, in `cuts_ptr` [rows], or with `CHOOSE` a token drawn
    from those above it, in `token_ptr` [rows]."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    values_ptr += row * vocabulary
    tokens_ptr += row * vocabulary
    inv_temp, count, greedy = row_options(temperature_ptr, k_ptr, row, vocabulary, FILTER_K)
    num_found = tl.load(num_found_ptr + row)
    row_max = tl.load(bounds_ptr + 3 * row + 1)
    acc = tl.load(bounds_ptr + 3 * row + 2)
    head = tl.load(values_ptr + offs, mask=offs < num_found, other=float("-inf"))
    cut = _LEAST
    if count < vocabulary:
        for bit in range(32):
            higher = cut ^ (1 << (31 - bit))
            if count_kept(head, values_ptr, num_found, higher, BLOCK) >= count:
                cut = higher
        acc = sum_weights(head, values_ptr, num_found, cut, row_max, inv_temp, BLOCK)
    if FILTER_P:
        p = tl.load(p_ptr + row).to(tl.float32)
        if p < 1.0:
            least = cut
            cut = _LEAST
            for bit in range(32):
                higher = cut ^ (1 << (31 - bit))
                above = tl.maximum(higher, least)
                if (
                    sum_weights(head, values_ptr, num_found, above, row_max, inv_temp, BLOCK)
                    >= p * acc
                ):
                    cut = higher
            cut = tl.minimum(tl.maximum(cut, least), ordered(row_max))
    if FILTER_MIN:
        ratio = tl.load(min_ptr + row).to(tl.float32)
        if (ratio > 0.0) & (inv_temp > 0.0):
            cut = tl.maximum(cut, ordered(row_max + tl.log2(tl.minimum(ratio, 1.0)) / inv_temp))
    if CHOOSE:
        uniform = tl.rand(seed, row)
        goal = uniform * sum_weights(head, values_ptr, num_found, cut, row_max, inv_temp, BLOCK)
        goal = tl.where(greedy, 0.0, goal)
        sum_before = 0.0
        first = num_found
        last = 0
        for start in range(0, num_found, BLOCK):
            mask = offs < num_found - start
            x = tl.load(values_ptr + start + offs, mask=mask, other=float("-inf"))
            mask = mask & (ordered(x) >= cut)
            probability = tl.where(mask, exp_weight(x, row_max, inv_temp), 0.0)
            cumulative_sum = sum_before + tl.cumsum(probability)
            reached_goal = mask & (probability > 0.0) & (cumulative_sum > goal)
            first = tl.minimum(first, tl.min(tl.where(reached_goal, start + offs, num_found)))
            last = tl.maximum(last, tl.max(tl.where(mask & (probability > 0.0), start + offs, 0)))
            sum_before += tl.sum(probability)  # pyright: ignore[reportOperatorIssue]
        # Where rounding leaves the goal beyond the last sum, the last token has it.
        position = tl.where(first < num_found, first, last)
        tl.store(token_ptr + row, tl.load(tokens_ptr + position, mask=num_found > 0, other=0))
    else:
        tl.store(cuts_ptr + row, cut)


@triton.jit
def mask_kernel(
    logits_ptr, cuts_ptr, out_ptr, vocabulary, stride,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Logits below their row's threshold become -inf."""
    tiles_n = tl.cdiv(vocabulary, BLOCK)
    row = (tl.program_id(0) // tiles_n).to(tl.int64)
    start = tl.program_id(0) % tiles_n * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < vocabulary - start
    cut = tl.load(cuts_ptr + row)
    x = tl.load(logits_ptr + row * stride + start + offs, mask=mask, other=0.0)
    survivors = ordered(x.to(tl.float32)) >= cut
    out_ptrs = out_ptr + row * vocabulary + start + offs
    tl.store(
        out_ptrs, tl.where(survivors, x, float("-inf")).to(out_ptr.dtype.element_ty), mask=mask
    )


def split(vocabulary: int) -> dict[str, int]:
    """`SPLIT`, `COLUMNS` and `PARTS` of the kernels for a vocabulary."""
    tokens = max(512, min(_SPLIT, triton.next_power_of_2(vocabulary)))
    parts = triton.next_power_of_2(triton.cdiv(vocabulary, tokens))
    return {"SPLIT": tokens, "COLUMNS": max(32, min(512, _BEST // parts)), "PARTS": parts}


def _part_kernel(function: Any, instructions: float, passes: int = 0) -> KernelSpec:
    """A program per part of a row: `instructions` per token, and more for each of `passes` over the
    largest of the columns."""

    def elements(problem: Problem, passes: int) -> int:
        shape = split(problem["vocabulary"])
        return max(shape["SPLIT"], shape["PARTS"] * shape["COLUMNS"] if passes else 0)

    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        return elements(problem, 1) <= 32 * settings["num_warps"] * device.wave_lanes

    def grid(problem: Problem, settings: Settings) -> tuple[int]:
        parts = triton.cdiv(problem["vocabulary"], split(problem["vocabulary"])["SPLIT"])
        return (problem["rows"] * parts,)

    def demand(problem: Problem, settings: Settings, device: Device) -> Demand:
        return describe.StreamingKernel(
            workgroups=grid(problem, settings)[0],
            read=problem["rows"] * problem["vocabulary"] * problem["bytes"],
            written=0.0,
            elements=elements(problem, passes),
            instructions=instructions + 3.0 * passes,
            live_registers=3.0,
        )

    return KernelSpec(
        function=function,
        grid=grid,
        axes={"num_warps": (4, 8, 16)},
        fits=fits,
        demand=demand,
        strides=_STRIDES,
        rounded=_ROUNDED,
    )


_STRIDES = {"logits": "stride"}
_ROUNDED = ("rows", "vocabulary")
SUMMARY = _part_kernel(summary_kernel, 14.0)
COUNT = _part_kernel(count_kernel, 6.0, 32)
GATHER = _part_kernel(gather_kernel, 20.0)
CHOOSE = KernelSpec(
    function=choose_kernel,
    grid="rows",
    axes={"BLOCK": (1024,), "num_warps": (4,)},
    demand=lambda problem, settings, device: describe.Constant(0.0),  # one configuration
    rounded=_ROUNDED,
)
MASK = KernelSpec.streaming(
    mask_kernel,
    grid="rows * cdiv(vocabulary, BLOCK)",
    axes={"BLOCK": (1024, 2048, 4096), "num_warps": (4, 8)},
    read="rows * vocabulary * bytes",
    written="rows * vocabulary * bytes",
    elements="BLOCK",
    live_registers=2.0,
    strides=_STRIDES,
    rounded=_ROUNDED,
)
