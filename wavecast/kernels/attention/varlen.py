"""Attention over sequences of any lengths, packed one after the other."""

from torch import Tensor

from wavecast.kernels.attention import launches, reference, sizes
from wavecast.kernels.attention.call import AttentionOptions, Call, Packed
from wavecast.kernels.describe import Operator, Tolerance, derivative

TENSORS, BACKWARD_TENSORS = sizes.signatures(
    "rows_q", "rows_k", "hq, rows_q", "cu_seqlens_q: [starts] int32", "cu_seqlens_k: [starts] int32"
)


@TENSORS.checked
def attention_varlen(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_q: int,
    max_k: int, causal: bool = False, scale: float | None = None, left: int = -1, right: int = -1,
    sinks: Tensor | None = None, alibi: Tensor | None = None, soft_cap: float = 0.0,
    dropout: float = 0.0, seed: int = 0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`attention` of each of N sequences: (out [Q, Hq, Dv] in the dtype of q, lse [Hq, Q] in
    float32).

    `q` is [Q, Hq, D], `k` [K, Hkv, D] and `v` [K, Hkv, Dv]. The queries of sequence n are rows
    `cu_seqlens_q[n]` to `cu_seqlens_q[n + 1]`, its keys rows `cu_seqlens_k[n]` to
    `cu_seqlens_k[n + 1]` (both [N + 1] of int32); no sequence may have more than `max_q` queries or
    `max_k` keys, which nothing checks. Rows of no sequence give zeros. All else is as in
    `attention`. Raises ArgumentError.
    """
    options = AttentionOptions(causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    return launches.forward(Call("attention_varlen", q, k, v, options, packed))


def attention_varlen_reference(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, *options, **keywords
):
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    return reference.forward(
        Call("attention_varlen", q, k, v, AttentionOptions(*options, **keywords), packed)
    )


@BACKWARD_TENSORS.checked
def attention_varlen_backward(
    dout: Tensor, dlse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
    cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_q: int, max_k: int, causal: bool = False,
    scale: float | None = None, left: int = -1, right: int = -1, sinks: Tensor | None = None,
    alibi: Tensor | None = None, soft_cap: float = 0.0, dropout: float = 0.0, seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `attention_varlen`: (dq, dk, dv, dsinks), as `attention_backward` gives
    them. `dout` and `dlse` (None: zeros) must be zero in rows of no sequence. Raises ArgumentError.
    """
    options = AttentionOptions(causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    call = Call("attention_varlen_backward", q, k, v, options, packed)
    return launches.backward(call, dout, dlse, out, lse)


def attention_varlen_backward_reference(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, max_q, max_k, *options, **keywords
):
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    call = Call(
        "attention_varlen_backward", q, k, v, AttentionOptions(*options, **keywords), packed
    )
    return reference.backward(call, dout, dlse)


def _case(q, k, hq, hkv, d, dtype="bfloat16", **flags):
    return {"q": q, "k": k, "hq": hq, "hkv": hkv, "d": d, "dtype": dtype, **flags}


_PACKED = (4096, 2048, 1024, 512) * 2

VARLEN = Operator(
    summary="softmax attention of packed sequences",
    call=attention_varlen,
    inputs=sizes.inputs(TENSORS),
    work=sizes.work(TENSORS, sizes.forward_flops),
    cases=(
        _case((3, 5), (4, 7), 2, 1, 8, "float32", sinks=True),
        _case((70, 1, 90), (100, 40, 90), 2, 1, 32, causal=True),
        _case((50, 0, 80), (60, 10, 30), 2, 2, 24, "float16", causal=True, left=33, sinks=True),
    ),
    shapes=(_case(_PACKED, _PACKED, 32, 8, 128, causal=True),),
    thorough=(
        _case((40, 60), (90, 50), 2, 1, 32, alibi=True, soft_cap=20.0),
        _case((40, 60), (90, 50), 2, 1, 32, dropout=0.25),
        _case((40, 0), (0, 50), 1, 1, 48, "float32", dv=32, right=5),
        _case((3, 1, 9), (90, 0, 50), 8, 2, 32, causal=True, left=30),
    ),
    gradient=derivative.by_operator(
        attention_varlen,
        "attention_varlen_backward",
        **sizes.gradient("cu_seqlens_q", "cu_seqlens_k", "max_q", "max_k"),
    ),
    tolerance=Tolerance(ulps=2.0, accumulated=4e-6),
    fake=lambda q, k, v, *_, **__: reference.fake_forward(q, v),
)
BACKWARD = derivative.operator(
    VARLEN,
    attention_varlen_backward,
    inputs=sizes.backward_inputs(BACKWARD_TENSORS, attention_varlen_reference),
    work=sizes.work(BACKWARD_TENSORS, sizes.backward_flops),
    tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
    fake=reference.fake_backward(attention_varlen_backward),
)
OPERATORS = (VARLEN, BACKWARD)
