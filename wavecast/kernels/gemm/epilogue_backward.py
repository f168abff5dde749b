"""Gradients of what follows a product: of its activation and gate."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.gemm import epilogue
from wavecast.kernels.gemm.epilogue import ACTIVATIONS, activated, slope
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous
from wavecast.model.bounds import Work


@triton.jit
def matmul_epilogue_backward_kernel(
    dy_ptr, z_ptr, gate_ptr, dz_ptr, dgate_ptr, count, ACTIVATION: tl.constexpr,
    WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0)
    if WIDE:
        first = first.to(tl.int64)
    at = first * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + at, mask=inside, other=0.0).to(tl.float32)
    dz = dy * slope(z, ACTIVATION)
    if gate_ptr is not None:
        dz *= tl.load(gate_ptr + at, mask=inside, other=0.0).to(tl.float32)
        dgate = dy * activated(z, ACTIVATION)
        tl.store(dgate_ptr + at, dgate.to(dgate_ptr.dtype.element_ty), mask=inside)
    tl.store(dz_ptr + at, dz.to(dz_ptr.dtype.element_ty), mask=inside)


def matmul_epilogue_backward(
    dy: torch.Tensor,
    z: torch.Tensor,
    gate: torch.Tensor | None = None,
    activation: str = "none",
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `y = activation(z) * gate` with respect to `z` and `gate`.

    `dy`, `z` and `gate` have one shape and any of float32, float16 and bfloat16. The first result
    is of the dtype of `dy`, the second of that of `gate` (empty without one). Raises ArgumentError.
    """
    name = "matmul_epilogue_backward"
    checks.dtype_in(name, "dy", dy, checks.FLOATS)
    checks.dtype_in(name, "z", z, checks.FLOATS)
    checks.shape_is(name, "z", z, dy.shape)
    checks.one_of(name, "activation", activation, ACTIVATIONS)
    if gate is not None:
        checks.dtype_in(name, "gate", gate, checks.FLOATS)
        checks.shape_is(name, "gate", gate, dy.shape)
    checks.same_device(name, dy=dy, z=z, gate=gate)
    dz = torch.empty(dy.shape, dtype=dy.dtype, device=dy.device)
    dgate = _like_gate(dy, gate)
    count = dy.numel()
    if not count:
        return dz, dgate
    given = contiguous(gate)
    problem = {
        "count": count,
        "bytes": dy.element_size() + z.element_size(),
        "gated": gate is not None,
        "activation": activation,
    }
    launch(
        matmul_epilogue_backward_kernel,
        lambda settings: (triton.cdiv(count, settings["BLOCK"]),),
        (dy.contiguous(), z.contiguous(), given, dz, None if gate is None else dgate, count),
        SPACE,
        problem,
        ACTIVATION=activation,
        WIDE=checks.wide(dy),
    )
    return dz, dgate


def matmul_epilogue_backward_reference(
    dy: torch.Tensor,
    z: torch.Tensor,
    gate: torch.Tensor | None = None,
    activation: str = "none",
) -> tuple[torch.Tensor, torch.Tensor]:
    """By the formulas, in float32 at least."""
    kind = torch.promote_types(torch.promote_types(dy.dtype, z.dtype), torch.float32)
    wide, dwide = z.to(kind), dy.to(kind)
    dz = dwide * _slope(wide, activation)
    if gate is None:
        return dz.to(dy.dtype).contiguous(), _like_gate(dy, gate)
    dgate = dwide * epilogue.reference(wide, activation=activation)
    dz = dz * gate.to(kind)
    return dz.to(dy.dtype).contiguous(), dgate.to(gate.dtype).contiguous()


def _slope(z: torch.Tensor, activation: str) -> torch.Tensor:
    if activation == "relu":
        return (z > 0).to(z.dtype)
    if activation == "gelu":
        normal = torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5
        return torch.special.ndtr(z) + z * normal
    if activation == "gelu_tanh":
        scale = (2 / torch.pi) ** 0.5
        inside = torch.tanh(scale * (z + 0.044715 * z**3))
        inner = scale * (1 + 3 * 0.044715 * z.square())
        return 0.5 * (1 + inside) + 0.5 * z * (1 - inside.square()) * inner
    if activation == "silu":
        share = torch.sigmoid(z)
        return share * (1 + z * (1 - share))
    return torch.ones_like(z)


def _like_gate(dy: torch.Tensor, gate: torch.Tensor | None) -> torch.Tensor:
    if gate is None:
        return torch.empty(0, dtype=dy.dtype, device=dy.device)
    return torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    count, tensors = problem["count"], 2 if problem["gated"] else 1
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(count, settings["BLOCK"]),
        read=count * (problem["bytes"] + 2 * (tensors - 1)),
        written=count * 2 * tensors,
        elements=settings["BLOCK"],
        operations=20.0,
        held=4.0,
    )


SPACE = Space(
    kernel="matmul_epilogue_backward_kernel",
    axes=lambda problem, device: {
        "BLOCK": (1024, 2048, 4096, 8192),
        "num_warps": (4, 8),
        "num_stages": (1,),
    },
    seconds=_seconds,
    classes=("count",),
)


def _inputs(
    make: Make, m: int, n: int, dtype: str, gate: bool = False, activation: str = "silu"
) -> dict[str, Any]:
    return {
        "dy": make.normal((m, n), dtype),
        "z": make.normal((m, n), "float64" if dtype == "float64" else "float32"),
        "gate": make.normal((m, n), dtype) if gate else None,
        "activation": activation,
    }


def _work(m: int, n: int, dtype: str, gate: bool = False, activation: str = "silu") -> Work:
    size, count = getattr(torch, dtype).itemsize, m * n
    read = count * (size + 4 + size * gate)
    flops = {"vector_fp32": 10.0 * count}
    return Work(flops, read, count * size * (1 + gate), "formula", "formula")


_CASES = (
    {"m": 7, "n": 33, "dtype": "float32", "gate": True},
    {"m": 65, "n": 130, "dtype": "bfloat16", "activation": "gelu"},
    {"m": 9, "n": 200, "dtype": "float16", "gate": True, "activation": "gelu_tanh"},
)
_THOROUGH = (
    {"m": 9, "n": 200, "dtype": "float32", "activation": "relu"},
    {"m": 9, "n": 20, "dtype": "bfloat16", "gate": True, "activation": "none"},
)

OPERATORS = (
    Operator(
        name="matmul_epilogue_backward",
        summary="gradients of the activation and gate of matmul",
        call=matmul_epilogue_backward,
        reference=matmul_epilogue_backward_reference,
        gradient=by_reference(matmul_epilogue_backward_reference),
        inputs=_inputs,
        work=_work,
        batch=Batch(("dy", "z", "gate"), unless=lambda gate=None, **_: gate is None),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=({"m": 8192, "n": 14336, "dtype": "bfloat16", "gate": True},),
        spaces=(SPACE,),
        tolerance=Tolerance(ulps=1.0, accumulated=4e-6),
    ),
)
