"""What values of Triton kernels without a documented result decide, behind sums over waves."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from wavecast.emulate.trace.fidelity import open_instructions  # noqa: E402
from wavecast.emulate.trace.mode import TraceMode  # noqa: E402

pytestmark = pytest.mark.torch


@triton.jit
def branch_on_a_sum(x_ptr, out_ptr, N: tl.constexpr, FUNCTION: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    if FUNCTION == "exp":
        value = tl.exp(x)
    elif FUNCTION == "log":
        value = tl.log(x)
    elif FUNCTION == "rsqrt":
        value = tl.rsqrt(x)
    else:
        value = tl.sqrt(x)
    total = tl.sum(value, axis=0)
    if total > 100.0:  # pyright: ignore[reportOperatorIssue]
        tl.store(out_ptr, 1)
    tl.store(out_ptr + 1 + (total.to(tl.int32) & 7), 1)


FUNCTIONS = {
    "exp": "v_exp_f32",
    "log": "v_log_f32",
    "rsqrt": "v_rsq_f32",
    "sqrt": "v_sqrt_f32",
}


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("function", ["exp", "log", "rsqrt", "sqrt"])
def test_a_sum_over_waves(target: str, function: str) -> None:
    x, out = torch.full((1024,), 2.0), torch.zeros(9, dtype=torch.int32)
    mode = TraceMode(memory=False, values=True)
    with wavecast.device(target, trace=mode):
        branch_on_a_sum[(1,)](x, out, N=1024, FUNCTION=function, num_warps=4)
    assert out.sum() == 2
    (launch,) = mode.traces
    assert launch.links
    decided = {
        entry.instruction.mnemonic.removesuffix("_e32").removesuffix("_e64"): {
            decision.kind for decision in entry.decisions
        }
        for entry in open_instructions(launch)
    }
    kinds = decided[FUNCTIONS[function]]
    assert "address" in kinds
    assert kinds & {"branch", "lanes"}
