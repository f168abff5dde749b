# type: ignore - FlyDSL compiles this, and need not be installed
"""A script in FlyDSL with an autotuned kernel, unmodified."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch
from flydsl.autotune import Config, autotune


@flyc.kernel
def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, count: fx.Int32, BLOCK: fx.Constexpr[int]):
    number = fx.block_idx.x * BLOCK + fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    views = [fx.logical_divide(tensor, fx.make_layout(1, 1)) for tensor in (A, B, C)]
    values = [fx.make_rmem_tensor(1, fx.Float32) for _ in views]
    if number < count:
        for view, value in zip(views[:2], values[:2], strict=True):
            fx.copy_atom_call(atom, fx.slice(view, (None, number)), value)
        total = fx.memref_load_vec(values[0]) + fx.memref_load_vec(values[1])
        fx.memref_store_vec(total, values[2])
        fx.copy_atom_call(atom, values[2], fx.slice(views[2], (None, number)))


@autotune(configs=[Config(BLOCK=64), Config(BLOCK=256), Config(BLOCK=4096)], key=["count"])
@flyc.jit
def add(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    count: fx.Int32,
    BLOCK: fx.Constexpr[int],
    stream: fx.Stream = fx.Stream(None),  # noqa: B008
):
    groups = (count + BLOCK - 1) // BLOCK
    kernel = add_kernel(A, B, C, count, BLOCK)
    kernel.launch(grid=(groups, 1, 1), block=(BLOCK, 1, 1), stream=stream)


if __name__ == "__main__":
    a, b = (torch.randn(4096, device="cuda") for _ in range(2))
    c = torch.zeros(4096, device="cuda")
    for _ in range(2):
        add(a, b, c, 4096)
