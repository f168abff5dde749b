"""RMS norm of rows in a buffer with four extra columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, w, y, stride_x, stride_y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    v = tl.load(x + row * stride_x + offs, mask=mask, other=0.0).to(tl.float32)  # planted
    scale = tl.rsqrt(tl.sum(v * v, 0) / columns + eps)
    out = v * scale * tl.load(w + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * stride_y + offs, out.to(y.dtype.element_ty), mask=mask)


def main(rows=16384, columns=4096, extra=4):
    x = torch.empty(rows, columns + extra, dtype=torch.bfloat16)[:, :columns]
    w = torch.empty(columns, dtype=torch.bfloat16)
    y = torch.empty(rows, columns, dtype=torch.bfloat16)
    rms_norm[(rows,)](x, w, y, x.stride(0), y.stride(0), columns, 1e-6, BLOCK=4096)


if __name__ == "__main__":
    main()
