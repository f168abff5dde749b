# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# (arguments of Triton functions become constants as they are compiled)
"""The kernel before the backward ones: delta = rowsum(dout · out) - dlse."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def attention_delta_kernel(
    out_ptr, dout_ptr, dlse_ptr, delta_ptr, rows, heads, queries, lse_batch, lse_head,
    HEAD: tl.constexpr, DIM: tl.constexpr, DLSE: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Of rows in the order (batch, query, head), to the order of lse."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    query = row // heads
    place = query // queries * lse_batch + query % queries + row % heads * lse_head
    e = tl.arange(0, DIM)
    wide = row.to(tl.int64) if WIDE else row
    mask = inside[:, None] & (e < HEAD)[None, :]
    out = tl.load(out_ptr + wide[:, None] * HEAD + e[None, :], mask=mask, other=0.0)
    dout = tl.load(dout_ptr + wide[:, None] * HEAD + e[None, :], mask=mask, other=0.0)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), 1)
    if DLSE:
        delta -= tl.load(dlse_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta_ptr + place, delta, mask=inside)


__all__ = ["attention_delta_kernel"]
