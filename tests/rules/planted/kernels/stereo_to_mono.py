"""Mono from stereo: the left and the right samples are loaded apart."""

import torch
import triton
import triton.language as tl


@triton.jit
def to_mono(stereo, mono, n, left_gain, right_gain, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offs = start + tl.arange(0, BLOCK)
    left = tl.load(stereo + 2 * offs, mask=offs < n)  # planted
    right = tl.load(stereo + 2 * offs + 1, mask=offs < n)
    mixed = left.to(tl.float32) * left_gain + right.to(tl.float32) * right_gain
    tl.store(mono + offs, mixed.to(mono.dtype.element_ty), mask=offs < n)


def main(n=1 << 25):
    stereo = torch.empty(n, 2, dtype=torch.float16)
    mono = torch.empty(n, dtype=torch.float16)
    to_mono[(triton.cdiv(n, 2048),)](stereo, mono, n, 0.5, 0.5, BLOCK=2048)


if __name__ == "__main__":
    main()
