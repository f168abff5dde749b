"""Multi-head latent attention of many queries at once, keys and values expanded: the heads of q and
k have a second part, with the rotary embedding, that in k all heads share."""

import torch
from torch import Tensor

from wavecast.kernels.attention import launches, reference, sizes
from wavecast.kernels.attention.call import AttentionOptions, Call, Packed
from wavecast.kernels.describe import Gradient, Operator, Signature, Tolerance

TENSORS = Signature(
    "q_nope: [rows_q, h, d] float",
    "q_rope: [rows_q, h, rope] =q_nope",
    "k_nope: [rows_k, h, d] =q_nope",
    "k_rope: [rows_k, rope] =q_nope",
    "v: [rows_k, h, dv] =q_nope",
    "cu_seqlens_q: [starts] int32",
    "cu_seqlens_k: [starts] int32",
    returns=("out: [rows_q, h, dv] =q_nope", "lse: [h, rows_q] float32"),
)


@TENSORS.checked
def mla_prefill(
    q_nope: Tensor, q_rope: Tensor, k_nope: Tensor, k_rope: Tensor, v: Tensor, cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor, max_q: int, max_k: int, causal: bool = True, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of packed sequences with heads in two parts: (out [Q, H, Dv] in the dtype of
    q_nope, lse [H, Q] in float32).

    `q_nope` is [Q, H, D] and `q_rope` [Q, H, R], `k_nope` [K, H, D] and `v` [K, H, Dv]; `k_rope`
    [K, R] is the second part of the keys of all heads (DeepSeek: D and Dv 128, R 64). All are
    float32, float16 or bfloat16, with D, R and Dv from 1 to 256 and any strides of rows and heads,
    so that q_nope and q_rope may be views of one tensor. Sums are in float32.

    Logits are (q_nope · k_nopeᵀ + q_rope · k_ropeᵀ) · `scale` (by default 1 / √(D + R), always
    positive). The queries of sequence n are rows `cu_seqlens_q[n]` to `cu_seqlens_q[n + 1]`, its
    keys rows `cu_seqlens_k[n]` to `cu_seqlens_k[n + 1]` (both [N + 1] of int32); no sequence may
    have more than `max_q` queries or `max_k` keys, which nothing checks. If `causal`, the last
    query sees all keys, the one before all but the last, and so on.

    With lse, the logarithm of the denominator, chunks of a long context are merged: those before
    without `causal`, the last with it. A query that sees nothing gives zeros, and -inf as lse.

    The gradient concatenates the parts and calls `attention_varlen_backward`. Raises ArgumentError.
    """
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    call = Call(
        "mla_prefill", q_nope, k_nope, v, AttentionOptions(causal, scale), packed, (q_rope, k_rope)
    )
    return launches.forward(call)


def mla_prefill_reference(
    q_nope, q_rope, k_nope, k_rope, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, causal=True,
    scale=None,
):  # fmt: skip
    """Sequence by sequence on concatenated heads."""
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    q, k = _concat_rope(q_nope, q_rope, k_nope, k_rope)
    return reference.forward(Call("mla_prefill", q, k, v, AttentionOptions(causal, scale), packed))


def _concat_rope(q_nope, q_rope, k_nope, k_rope):
    """Whole queries and keys."""
    k_rope = k_rope[:, None].expand(-1, k_nope.shape[1], -1)
    return torch.cat([q_nope, q_rope], -1), torch.cat([k_nope, k_rope], -1)


def _setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:7], *output)
    ctx.options = inputs[7:]


def _gradient(ctx, dout, dlse):
    q_nope, q_rope, k_nope, k_rope, v, starts_q, starts_k, out, lse = ctx.saved_tensors
    if dout is None:
        dout = torch.zeros_like(out)
    q, k = _concat_rope(q_nope, q_rope, k_nope, k_rope)
    dq, dk, dv, _ = torch.ops.wavecast.attention_varlen_backward(
        dout, dlse, q, k, v, out, lse, starts_q, starts_k, *ctx.options
    )
    d = q_nope.shape[-1]
    parts = dq[..., :d], dq[..., d:], dk[..., :d], dk[..., d:].sum(1)
    return *(part.contiguous() for part in parts), dv, *(None,) * 6


def _case(q, k, h, d=128, rope=64, dv=128, dtype="bfloat16", causal=True):
    sizes = {"q": q, "k": k, "h": h, "d": d, "rope": rope, "dv": dv, "dtype": dtype}
    return {**sizes, "causal": causal}


OPERATOR = Operator(
    summary="multi-head latent attention of packed sequences, for prefill",
    call=mla_prefill,
    inputs=sizes.inputs(TENSORS),
    work=sizes.work(TENSORS, sizes.forward_flops),
    cases=(
        _case((3, 5), (4, 7), 2, 8, 4, 8, "float32"),
        _case((60, 1, 20), (60, 70, 90), 2),
        _case((40, 10), (70, 0), 2, 48, 24, 32, "float16", False),
    ),
    shapes=(
        _case((1024,) * 8, (1024,) * 8, 128),
        _case((4096,) * 2, (4096,) * 2, 128),
        _case((16384,), (16384,), 128),
        _case((4096,) * 2, (4096,) * 2, 16),
        _case((16384,), (16384,), 16),
        _case((2048,) * 4, (8192,) * 4, 16, causal=False),
    ),
    thorough=(
        _case((70, 0, 33), (70, 20, 65), 1, 64, 32, 96),
        _case((90,), (60,), 2, 128, 64, 128, "float16"),
        _case((30, 17), (30, 40), 1, 128, 64, 128, "float32"),
        _case((50,), (130,), 1, 192, 64, 256),
    ),
    gradient=Gradient(_setup, _gradient),
    tolerance=Tolerance(ulps=2.0, accumulated=4e-6),
    fake=lambda q_nope, q_rope, k_nope, k_rope, v, *_, **__: reference.fake_forward(q_nope, v),
)
