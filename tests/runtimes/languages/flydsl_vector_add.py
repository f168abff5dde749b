# type: ignore - FlyDSL compiles this, and need not be installed
"""A script in FlyDSL, unmodified: it knows nothing of Wavecast."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch


@flyc.kernel
def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, count: fx.Int32):
    number = fx.block_idx.x * 64 + fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    views = [fx.logical_divide(tensor, fx.make_layout(1, 1)) for tensor in (A, B, C)]
    values = [fx.make_rmem_tensor(1, fx.Float32) for _ in views]
    if number < count:
        for view, value in zip(views[:2], values[:2], strict=True):
            fx.copy_atom_call(atom, fx.slice(view, (None, number)), value)
        total = fx.memref_load_vec(values[0]) + fx.memref_load_vec(values[1])
        fx.memref_store_vec(total, values[2])
        fx.copy_atom_call(atom, values[2], fx.slice(views[2], (None, number)))


@flyc.jit
def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, count: fx.Int32, stream: fx.Stream):
    groups = (count + 63) // 64
    add_kernel(A, B, C, count).launch(grid=(groups, 1, 1), block=(64, 1, 1), stream=stream)


if __name__ == "__main__":
    a, b = (torch.randn(100, device="cuda") for _ in range(2))
    c = torch.zeros(100, device="cuda")
    add(a, b, c, 100, torch.cuda.Stream())
    torch.cuda.synchronize()
    print("right" if torch.equal(c, a + b) else "wrong")
