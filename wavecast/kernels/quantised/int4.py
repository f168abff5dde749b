"""Products with weights of four bits while they are codes still."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.strides import adjacent


@triton.jit
def product_of_codes(x, codes, zero, PACKED: tl.constexpr):
    """x · (codes - zero) of x [rows, depth] in float16 or bfloat16, of `codes`
    [depth / PACKED, columns], integers of PACKED codes each, and of `zero` per column.

    The n-th code of each, or'd into the low bits of a number in x's format, is that number plus
    the code: PACKED products, each of every PACKED-th element of the depth, need no shuffling and
    two instructions per two weights. What they have too much, zero point included, is the same
    factor of the sum of a row of x."""
    ROWS: tl.constexpr = x.shape[0]
    FEW: tl.constexpr = codes.shape[0]
    HALF: tl.constexpr = x.dtype
    # 1024 in float16, 128 in bfloat16: a unit of the last place is 1
    BITS: tl.constexpr = 0x6400 if tl.float16 == HALF else 0x4300
    MORE: tl.constexpr = 1024.0 if tl.float16 == HALF else 128.0
    row_sum = tl.sum(x.to(tl.float32), axis=1)
    if PACKED == 4:
        even, odd = tl.split(tl.reshape(x, (ROWS, FEW, 2, 2)))
        part_0, part_2 = tl.split(even)
        part_1, part_3 = tl.split(odd)
        xs = (part_0, part_1, part_2, part_3)
    else:
        part_0, part_1 = tl.split(tl.reshape(x, (ROWS, FEW, 2)))
        xs = (part_0, part_1)
    product = tl.zeros((ROWS, codes.shape[1]), tl.float32)
    for number in tl.static_range(PACKED):
        code = ((codes >> (4 * number)) & 15).to(tl.int16)
        product = tl.dot(xs[number], (code | BITS).to(HALF, bitcast=True), product)
    return product - row_sum[:, None] * (zero + MORE)[None, :]


@triton.jit
def differences(pairs, zero, HALF: tl.constexpr):
    """codes - zero, exactly, in HALF (float16 or bfloat16) [rows, columns], of `pairs`
    [rows, columns / 2] of two codes and of `zero` per row. Where many rows are multiplied by them,
    this costs less than what `product_of_codes` does to these."""
    ROWS: tl.constexpr = pairs.shape[0]
    COLUMNS: tl.constexpr = 2 * pairs.shape[1]
    code = tl.reshape(tl.join(pairs & 15, pairs >> 4), (ROWS, COLUMNS))
    if tl.float16 == HALF:
        # 0x6400 | code is 1024 + code
        above = (code.to(tl.int16) | 0x6400).to(tl.float16, bitcast=True)
        value = above - (zero + 1024.0).to(tl.float16)[:, None]
    else:
        # 0x4300 | code is 128 + code in bfloat16; the lower half of the difference is 0
        above = ((code.to(tl.int32) << 16) | 0x43000000).to(tl.float32, bitcast=True)
        bits = (above - (zero + 128.0)[:, None]).to(tl.int32, bitcast=True)
        value = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return value


def pack_codes(weight: Tensor, group: int) -> tuple[int, Tensor]:
    """(codes per integer, weights as such integers), of weights of two codes per byte: four where a
    `group` of one scale has enough of them for a matrix instruction."""
    if group < 64:
        return 2, adjacent(weight)
    starts = (*weight.stride()[:-1], weight.storage_offset())
    even = weight.stride(-1) == 1 and all(start % 2 == 0 for start in starts)
    if not even:
        weight = weight.clone(memory_format=torch.contiguous_format)
    return 4, weight.view(torch.int16)
