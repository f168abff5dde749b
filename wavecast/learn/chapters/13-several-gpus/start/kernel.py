import torch
import triton
import triton.language as tl


@triton.jit
def all_reduce_kernel(inputs, out, n, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n
        acc = tl.load(inputs[0] + offs, mask=mask)
        for peer in tl.static_range(1, WORLD):
            acc += tl.load(inputs[peer] + offs, mask=mask)
        tl.store(out + offs, acc, mask=mask)


def all_reduce(inputs):
    """The sum of all tensors, one per GPU, on every GPU."""
    outputs = [torch.empty_like(x) for x in inputs]
    for rank, out in enumerate(outputs):
        with torch.cuda.device(rank):
            all_reduce_kernel[(64,)](
                tuple(inputs), out, out.numel(), WORLD=len(inputs), BLOCK=2048, num_warps=4
            )
    return outputs
