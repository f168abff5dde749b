"""Attention of queries, keys and values in fp8."""

import torch
from torch import Tensor

from wavecast.kernels import checks, describe
from wavecast.kernels.attention import launches, reference, sizes
from wavecast.kernels.attention.call import AttentionOptions, Call
from wavecast.kernels.describe import Operator, Signature, Tolerance, wide_dtype
from wavecast.launch import gpu

TENSORS = Signature(
    "q: [b, s, hq, d] float8_e4m3fn|float8_e4m3fnuz",
    "k: [b, t, hkv, d] =q",
    "v: [b, t, hkv, dv] =q",
    "q_descale: [...] float32",
    "k_descale: [...] float32",
    "v_descale: [...] float32",
    "sinks?: [hq] float",
    returns=("out: [b, s, hq, dv] float", "lse: [b, hq, s] float32"),
    leading="descale_b descale_h",
)


@TENSORS.checked
def attention_fp8(
    q: Tensor, k: Tensor, v: Tensor, q_descale: Tensor, k_descale: Tensor, v_descale: Tensor,
    causal: bool = False, scale: float | None = None, left: int = -1, right: int = -1,
    sinks: Tensor | None = None, soft_cap: float = 0.0, out_dtype: torch.dtype = torch.bfloat16,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Softmax attention in fp8: (out [B, S, Hq, Dv] of `out_dtype`, lse [B, Hq, S] in float32).

    `q` [B, S, Hq, D], `k` [B, T, Hkv, D] and `v` [B, T, Hkv, Dv] are of float8_e4m3fn or all of
    float8_e4m3fnuz. `q_descale`, `k_descale` and `v_descale` (float32, positive) multiply them: all
    three of one element, or all three [B, Hkv], one per batch and head of the keys. `out_dtype` is
    float16, bfloat16 or float32. All else is as in `attention`.

    Where the GPU multiplies the format (fnuz: gfx942; the other: gfx950, gfx1201, sm_90), both
    products do so, sums are in float32 (on sm_90 with the fewer bits its tensor cores keep of fp8
    products), and probabilities are rounded to fp8 after multiplication by a power of two: each by
    up to 1/16 of itself, below 2⁻¹⁷ of the greatest to multiples of 2⁻¹⁸. Elsewhere the values are
    widened to bfloat16, exactly, and so are the products.

    There is no gradient. A NaN in a query, or in a key it sees, makes its row NaN; a NaN in v that
    column of every query that reads the block, as 0 · NaN is NaN. Raises ArgumentError.
    """
    name = "attention_fp8"
    device = gpu.launching()
    fits = device.vendor == "amd" or q.dtype != torch.float8_e4m3fnuz
    checks.require(fits, name, f"{device.id} has no float8_e4m3fnuz")
    if q_descale.numel() != 1:
        checks.shape_is(name, "q_descale", q_descale, (q.shape[0], k.shape[2]))
    checks.require(out_dtype in checks.FLOATS, name, f"no result of {out_dtype}, it gives floats")
    options = AttentionOptions(causal, scale, left, right, sinks, soft_cap=soft_cap)
    descales = q_descale, k_descale, v_descale
    return launches.forward(Call(name, q, k, v, options, descales=descales, result=out_dtype))


def attention_fp8_reference(
    q, k, v, q_descale, k_descale, v_descale, causal=False, scale=None, left=-1, right=-1,
    sinks=None, soft_cap=0.0, out_dtype=torch.bfloat16,
):  # fmt: skip
    """On descaled values, with probabilities that are not rounded."""
    dtype = wide_dtype(q_descale)

    def dequantise(x, descale):
        if descale.numel() == 1:
            return x.to(dtype) * descale.reshape(())
        group = x.shape[2] // descale.shape[1]
        return x.to(dtype) * descale.repeat_interleave(group, 1)[:, None, :, None]

    wide = dequantise(q, q_descale), dequantise(k, k_descale), dequantise(v, v_descale)
    options = AttentionOptions(causal, scale, left, right, sinks, soft_cap=soft_cap)
    out, lse = reference.forward(Call("attention_fp8", *wide, options))
    return out.to(
        torch.promote_types(dtype, out_dtype) if dtype == torch.float64 else out_dtype
    ), lse


def _case_sizes(by_head=True, out="bfloat16", **of_case):
    """Sizes of a case, as `sizes.expand_sizes` gives them."""
    case = sizes.expand_sizes(**of_case)
    case |= {"q_dtype": case["dtype"], "out_dtype": out, "sinks_dtype": out}
    shape = (case["b"], case["hkv"]) if by_head else (1,)
    return {**case, **dict(zip(TENSORS.leading, shape, strict=False))}


def _inputs(make, **of_case):
    arguments = _make_inputs(make, **_case_sizes(**of_case))
    return {**arguments, "out_dtype": make.dtype(of_case.get("out", "bfloat16"))}


_make_inputs = TENSORS.inputs(
    absent=("sinks",),
    q=describe.normal(16.0), k=describe.normal(16.0), v=describe.normal(16.0),
    q_descale=describe.uniform(0.03, 0.1), k_descale=describe.uniform(0.03, 0.1),
    v_descale=describe.uniform(0.03, 0.1),
)  # fmt: skip
_work = TENSORS.work(sizes.forward_flops, absent=("sinks",))


def _case(b, s, t, hq, hkv, d, dtype="float8_e4m3fn", **flags):
    return {"b": b, "s": s, "t": t, "hq": hq, "hkv": hkv, "d": d, "dtype": dtype, **flags}


_FNUZ = "float8_e4m3fnuz"
OPERATOR = Operator(
    summary="softmax attention of queries, keys and values in fp8",
    call=attention_fp8,
    inputs=_inputs,
    work=lambda **of_case: _work(**_case_sizes(**of_case)),
    cases=(
        _case(1, 7, 9, 2, 1, 16, causal=True, by_head=False),
        _case(2, 60, 130, 2, 1, 64, _FNUZ, causal=True),
        _case(1, 130, 150, 2, 1, 32, causal=True, left=40, sinks=True, out="float16"),
    ),
    shapes=tuple(
        {**_case(*shape, dtype, causal=True), **flags}
        for dtype in ("float8_e4m3fnuz", "float8_e4m3fn")
        for shape, flags in (
            ((1, 8192, 8192, 32, 8, 128), {}),
            ((1, 16384, 16384, 64, 8, 128), {}),
            ((1, 8192, 8192, 64, 8, 64), {"left": 127, "sinks": True}),
        )
    ),
    thorough=(
        _case(2, 60, 130, 2, 1, 64, causal=True),
        _case(1, 70, 150, 4, 2, 128, _FNUZ, right=20),
        _case(1, 40, 70, 1, 1, 192, dv=128),
        _case(1, 40, 70, 2, 2, 80, _FNUZ, soft_cap=20.0, by_head=False, out="float32"),
        _case(1, 7, 90, 8, 1, 64, causal=True),
    ),
    tolerance=Tolerance(ulps=2.0, accumulated=0.1),
)
