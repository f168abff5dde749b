"""Gradients of what follows a product: of its activation and gate."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, derivative, describe
from wavecast.kernels.describe import Make, sizes, vector_flops
from wavecast.kernels.gemm import epilogue
from wavecast.kernels.gemm.epilogue import ACTIVATIONS, activated, activation_grad

TENSORS = describe.Signature(
    "dy: [...] float",
    "z: [...] float",
    "gate?: [...] float",
    returns=("dz: [...] =dy", "dgate?: [...] =gate"),
    leading="m n",
)


@triton.jit
def matmul_epilogue_backward_kernel(
    dy_ptr, z_ptr, gate_ptr, dz_ptr, dgate_ptr, count, ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    if WIDE:
        pid = pid.to(tl.int64)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < count
    dy = tl.load(dy_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    dz = dy * activation_grad(z, ACTIVATION)
    if gate_ptr is not None:
        dz *= tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        dgate = dy * activated(z, ACTIVATION)
        tl.store(dgate_ptr + offs, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dz_ptr + offs, dz.to(dz_ptr.dtype.element_ty), mask=mask)


BACKWARD = describe.KernelSpec.streaming(
    matmul_epilogue_backward_kernel,
    grid="cdiv(count, BLOCK)",
    axes={"BLOCK": (1024, 2048, 4096, 8192), "num_warps": (4, 8)},
    read="count * (bytes + 2 * gated)",
    written="count * 2 * (1 + gated)",
    elements="BLOCK",
    instructions=20.0,
    live_registers=4.0,
    contiguous=("dy", "z", "gate"),
    rounded=("count",),
)


@TENSORS.checked
def matmul_epilogue_backward(
    dy: Tensor, z: Tensor, gate: Tensor | None = None, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    """The gradients of `y = activation(z) * gate` with respect to `z` and `gate`.

    `dy`, `z` and `gate` have one shape and any of float32, float16 and bfloat16. The first result
    is of the dtype of `dy`, the second of that of `gate` (empty without one). Raises ArgumentError.
    """
    checks.one_of("matmul_epilogue_backward", "activation", activation, ACTIVATIONS)
    dz = torch.empty(dy.shape, dtype=dy.dtype, device=dy.device)
    dgate = _like_gate(dy, gate)
    if dy.numel():
        size = dy.element_size() + z.element_size()
        problem = {"count": dy.numel(), "bytes": size, "gated": gate is not None}
        problem["activation"] = activation
        grads = {"dz": dz, "dgate": None if gate is None else dgate}
        choice.run(BACKWARD, problem, dy=dy, z=z, gate=gate, **grads)
    return dz, dgate


def matmul_epilogue_backward_reference(dy, z, gate=None, activation="none"):
    dtype = torch.promote_types(torch.promote_types(dy.dtype, z.dtype), torch.float32)
    z, grad = z.to(dtype), dy.to(dtype)
    dz = grad * epilogue.grad_reference(z, activation)
    if gate is None:
        return dz.to(dy.dtype).contiguous(), _like_gate(dy, gate)
    dgate = grad * epilogue.reference(z, activation=activation)
    return (dz * gate.to(dtype)).to(dy.dtype).contiguous(), dgate.to(gate.dtype).contiguous()


def _like_gate(dy: Tensor, gate: Tensor | None) -> Tensor:
    if gate is None:
        return torch.empty(0, dtype=dy.dtype, device=dy.device)
    return torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)


def _sizes(dtype: str, gate: bool = False, activation: str = "silu", **shape: int) -> Any:
    z_dtype = "float64" if dtype == "float64" else "float32"
    flags = {"gate": gate, "dgate": gate, "activation": activation}
    return {**shape, "dtype": dtype, "z_dtype": z_dtype, **flags}


def _inputs(make: Make, **case: Any) -> dict[str, Any]:
    return TENSORS.inputs()(make, **_sizes(**case))


OPERATOR = describe.Operator(
    summary="gradients of the activation and gate of matmul",
    call=matmul_epilogue_backward,
    inputs=_inputs,
    work=lambda **case: TENSORS.work(vector_flops(10.0, "m", "n"))(**_sizes(**case)),
    gradient=derivative.by_reference(matmul_epilogue_backward_reference),
    batch=describe.Batch(("dy", "z", "gate"), unless=lambda gate=None, **_: gate is None),
    tolerance=describe.Tolerance(ulps=1.0, accumulated=4e-6),
    cases=(
        *sizes("m n dtype gate", (7, 33, "float32", True)),
        *sizes("m n dtype activation", (65, 130, "bfloat16", "gelu")),
        *sizes("m n dtype gate activation", (9, 200, "float16", True, "gelu_tanh")),
    ),
    thorough=(
        *sizes("m n dtype activation", (9, 200, "float32", "relu")),
        *sizes("m n dtype gate activation", (9, 20, "bfloat16", True, "none")),
    ),
    shapes=sizes("m n dtype gate", (8192, 14336, "bfloat16", True)),
)
