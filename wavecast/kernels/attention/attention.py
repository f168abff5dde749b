"""Attention over rectangular batches: softmax(q · kᵀ · scale) · v, head by head."""

from torch import Tensor

from wavecast.kernels.attention import launches, reference, sizes
from wavecast.kernels.attention.call import AttentionOptions, Call
from wavecast.kernels.describe import Batch, Operator, Tolerance, derivative

TENSORS, BACKWARD_TENSORS = sizes.signatures(
    "b, s", "b, t", "b, hq, s", "mask?: [mask_b, mask_h, s, t] bool"
)


@TENSORS.checked
def attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None,
    left: int = -1, right: int = -1, sinks: Tensor | None = None, alibi: Tensor | None = None,
    soft_cap: float = 0.0, dropout: float = 0.0, seed: int = 0, mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Softmax attention: (out [B, S, Hq, Dv] in the dtype of q, lse [B, Hq, S] in float32).

    `q` is [B, S, Hq, D], `k` [B, T, Hkv, D] and `v` [B, T, Hkv, Dv] of float32, float16 or
    bfloat16, with D and Dv from 1 to 256; Hq is a multiple of Hkv, and neighbouring heads of q
    share one of k. Batch, rows and heads may have any strides. Sums are in float32.

    Logits are q · kᵀ · `scale` (by default 1 / √D, always positive), then
    `soft_cap` · tanh(logits / `soft_cap`) unless that is 0, then minus `alibi` [Hq] times the
    distance of query and key. Query i has the position of key i + T - S, so that the last query is
    at the last key; from there it sees `left` keys before and `right` keys after (-1: all), none
    after if `causal`, and of these only the keys that are true in its row of the `mask` [B or 1,
    Hq or 1, S, T]. A mask of any strides is read in place: one that is expanded along the queries
    takes a byte per key. `sinks` [Hq] are logits that only the denominator has. A query that sees
    nothing gives zeros, and -inf as lse, the logarithm of the denominator.

    `dropout` zeroes probabilities at random and scales the others; the same `seed` drops the same
    ones, whatever the GPU and in the gradient. Raises ArgumentError.
    """
    options = AttentionOptions(
        causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed, mask
    )
    return launches.forward(Call("attention", q, k, v, options))


def attention_reference(q, k, v, *options, **keywords):
    return reference.forward(Call("attention", q, k, v, AttentionOptions(*options, **keywords)))


@BACKWARD_TENSORS.checked
def attention_backward(
    dout: Tensor, dlse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
    causal: bool = False, scale: float | None = None, left: int = -1, right: int = -1,
    sinks: Tensor | None = None, alibi: Tensor | None = None, soft_cap: float = 0.0,
    dropout: float = 0.0, seed: int = 0, mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `attention`: (dq, dk, dv, dsinks), in the dtypes of what they belong to.

    `dout` and `dlse` (None: zeros) are the gradients of its results `out` and `lse`, the other
    arguments its own; `alibi` and `mask` have no gradient, and without `sinks` dsinks is empty.
    Every sum has a fixed order. Raises ArgumentError.
    """
    options = AttentionOptions(
        causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed, mask
    )
    return launches.backward(Call("attention_backward", q, k, v, options), dout, dlse, out, lse)


def attention_backward_reference(dout, dlse, q, k, v, out, lse, *options, **keywords):
    call = Call("attention_backward", q, k, v, AttentionOptions(*options, **keywords))
    return reference.backward(call, dout, dlse)


def _not_merged(dropout=0.0, mask=None, **_):
    """Dropout and masks go by the index of a batch."""
    return dropout > 0 or mask is not None


def _case(b, s, t, hq, hkv, d, dtype="bfloat16", **flags):
    return {"b": b, "s": s, "t": t, "hq": hq, "hkv": hkv, "d": d, "dtype": dtype, **flags}


ATTENTION = Operator(
    summary="softmax attention, causal or in windows, with grouped heads",
    call=attention,
    inputs=sizes.inputs(TENSORS),
    work=sizes.work(TENSORS, sizes.forward_flops),
    batch=Batch(("q", "k", "v"), merged=True, unless=_not_merged),
    cases=(
        _case(1, 7, 9, 2, 1, 8, "float32", causal=True, sinks=True, soft_cap=3.0),
        _case(2, 150, 150, 2, 1, 64, causal=True),
        _case(1, 70, 190, 2, 2, 80, "float16"),
        _case(1, 200, 170, 2, 1, 32, causal=True, left=40, sinks=True),
        _case(2, 70, 100, 4, 2, 32, causal=True, mask=True),
    ),
    shapes=(
        _case(1, 8192, 8192, 32, 8, 128, causal=True),
        _case(1, 16384, 16384, 64, 8, 128, causal=True),
        _case(4, 4096, 4096, 32, 8, 128, causal=True),
        _case(1, 8192, 8192, 128, 8, 128, causal=True),
        _case(1, 8192, 8192, 64, 8, 64, causal=True, left=127, sinks=True),
        _case(4, 2048, 2048, 32, 32, 64),
    ),
    thorough=(
        _case(1, 70, 150, 4, 2, 128, causal=True),
        _case(1, 70, 150, 2, 1, 192, dv=128, causal=True),
        _case(1, 130, 130, 2, 1, 32, "float16", alibi=True),
        _case(1, 130, 130, 2, 1, 32, "float16", causal=True, soft_cap=20.0),
        _case(1, 100, 130, 2, 1, 32, dropout=0.25),
        _case(1, 100, 230, 2, 1, 32, left=30, right=20),
        _case(1, 50, 70, 1, 1, 96, "float32", causal=True),
        _case(1, 70, 90, 1, 1, 256),
        _case(1, 90, 90, 4, 1, 32, causal=True, left=20, sinks=True, alibi=True, dropout=0.25),
        _case(2, 7, 150, 8, 1, 64, "float16", causal=True),
        _case(2, 90, 90, 2, 1, 64, "float16", mask=True, soft_cap=20.0, sinks=True),
        _case(2, 7, 150, 8, 1, 64, "float32", mask=True, mask_b=1, mask_h=8),
    ),
    gradient=derivative.by_operator(attention, "attention_backward", **sizes.gradient("mask")),
    tolerance=Tolerance(ulps=2.0, accumulated=4e-6),
    fake=lambda q, k, v, *_, **__: reference.fake_forward(q, v),
)
BACKWARD = derivative.operator(
    ATTENTION,
    attention_backward,
    inputs=sizes.backward_inputs(BACKWARD_TENSORS, attention_reference),
    work=sizes.work(BACKWARD_TENSORS, sizes.backward_flops),
    shapes=(ATTENTION.shapes[0], ATTENTION.shapes[2]),
    tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
    fake=reference.fake_backward(attention_backward),
)
OPERATORS = (ATTENTION, BACKWARD)
