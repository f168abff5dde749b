"""Mono from stereo: pairs of samples are loaded at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def to_mono(stereo, mono, n, left_gain, right_gain, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offs = start + tl.arange(0, BLOCK)
    pairs = 2 * start + tl.arange(0, 2 * BLOCK)
    both = tl.load(stereo + pairs, mask=pairs < 2 * n)
    left, right = tl.split(tl.reshape(both, (BLOCK, 2)))
    mixed = left.to(tl.float32) * left_gain + right.to(tl.float32) * right_gain
    tl.store(mono + offs, mixed.to(mono.dtype.element_ty), mask=offs < n)


def main(n=1 << 25):
    stereo = torch.empty(n, 2, dtype=torch.float16)
    mono = torch.empty(n, dtype=torch.float16)
    to_mono[(triton.cdiv(n, 2048),)](stereo, mono, n, 0.5, 0.5, BLOCK=2048)


if __name__ == "__main__":
    main()
