"""Attention of AITER: forward, backward, paged, and multi-head latent attention."""

from __future__ import annotations

import math

import pytest
import torch

from tests.libraries.data import FP8, attention, row_bytes
from tests.libraries.launching import launch, library_kernel, needs_objects

pytestmark = [needs_objects, pytest.mark.torch, pytest.mark.thorough]

HEAD = 128
SCALE = HEAD**-0.5


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [("bf16_causal_rtne", torch.bfloat16, 0.01), ("fp8_causal", FP8, 0.06)],
)
def test_forward(name: str, dtype: torch.dtype, tolerance: float) -> None:
    kernel = library_kernel(f"aiter_gfx942_fmha_v3_fwd_MI300_fwd_hd128_{name}.co")
    batch, length, heads, kv_heads, rows = 1, 512, 2, 1, 256
    draw = torch.Generator().manual_seed(1)
    q, k, v = (
        torch.randn(batch, length, count, HEAD, generator=draw).to(dtype)
        for count in (heads, kv_heads, kv_heads)
    )
    o = torch.zeros(batch, length, heads, HEAD, dtype=torch.bfloat16)
    lse = torch.zeros(batch, heads, length)
    arguments = {
        "R": o, "Q": q, "K": k, "V": v, "LSE": lse, "scalar": SCALE, "seq_len": length,
        "Ts": rows * row_bytes(q, 1), "gqa": heads // kv_heads, "msk_opt": 3, "lse": 1,
        "kv_seq_len": length, "qk_head_dim": HEAD, "v_head_dim": HEAD, "q_head_num": heads,
        "lse_Hs": 4 * length,
    }  # fmt: skip
    for prefix, tensor in (("", q), ("k_", k), ("v_", v), ("r_", o)):
        for suffix, dimension in (("Seqs", 1), ("Hs", 2), ("Bs", 0)):
            arguments[f"{prefix}{suffix}"] = row_bytes(tensor, dimension)
    if dtype is FP8:
        arguments |= {f"ptr_descale_{one}": torch.ones(1) for one in "qkv"}
    pairs = (-(-length // rows) + 1) // 2  # a workgroup has a tile of the beginning and the end
    launch(kernel, (pairs, heads, batch), 512, arguments)
    expected, expected_lse = attention(q, k, v, causal=True)
    torch.testing.assert_close(o.float(), expected, rtol=0.02, atol=tolerance)
    torch.testing.assert_close(lse, expected_lse, rtol=1e-5, atol=1e-5)


def test_backward() -> None:
    kernel = library_kernel("aiter_gfx942_fmha_v3_bwd_bwd_hd128_bf16_a16_rtna.co")
    length, rows = 192, 192
    draw = torch.Generator().manual_seed(2)
    q, k, v, do = (torch.randn(1, length, 1, HEAD, generator=draw).bfloat16() for _ in range(4))
    leaves = [x.float().requires_grad_() for x in (q, k, v)]
    o, lse = attention(*leaves)
    o.backward(do.float())
    delta = (o.detach() * do.float()).sum(-1).permute(0, 2, 1).contiguous()
    dq, dk, dv = (torch.zeros(1, length, 1, HEAD, dtype=torch.bfloat16) for _ in range(3))
    arguments = {
        "dQ": dq, "dK": dk, "dV": dv, "Q": q, "K": k, "V": v, "dO": do,
        "Lse": lse.detach().contiguous(), "D": delta, "scalar": SCALE, "log2e": math.log2(math.e),
        "seqlen_q": length, "seqlen_k": length, "Ts": rows * row_bytes(k, 1), "ratio": 1,
        "head_dim_q": HEAD, "head_dim_v": HEAD, "nhead_q": 1, "Hs_lsed": 4 * length,
        "max_seq_len_dq": length,
    }  # fmt: skip
    for suffix in ("q", "k", "v", "do", "dk", "dv"):
        for prefix, dimension in (("Seqs", 1), ("Hs", 2), ("BAs", 0)):
            arguments[f"{prefix}_{suffix}"] = row_bytes(q, dimension)
    launch(kernel, (1, 1, 1), 256, arguments)
    for grad, leaf in zip((dq, dk, dv), leaves, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(grad.float(), leaf.grad, rtol=0.02, atol=0.01)


@pytest.mark.parametrize(
    ("file", "group", "more"),
    [
        ("aiter_gfx942_pa_pa_bf16_noquant_gqa16_1tg_4w.co", 16, {"GQA": 16}),
        ("aiter_gfx942_pa_a16w16_b16.co", 8, {}),
    ],
    ids=["16 heads", "8 heads"],
)
def test_paged(file: str, group: int, more: dict[str, int]) -> None:
    """Pages of 16 tokens; keys are stored as [page, head, 16, tokens, 8], values as
    [page, head, 2, 128, 8]."""
    kernel = library_kernel(file)
    page, lengths = 16, (40, 23)
    draw = torch.Generator().manual_seed(3)
    q = torch.randn(len(lengths), group, HEAD, generator=draw).bfloat16()
    keys, values = (torch.randn(8, 1, page, HEAD, generator=draw).bfloat16() for _ in range(2))
    table = torch.tensor([[3, 1, 5, 0], [2, 6, 0, 0]], dtype=torch.int32)
    k = keys.view(8, 1, page, HEAD // 8, 8).permute(0, 1, 3, 2, 4).contiguous()
    v = values.transpose(2, 3).reshape(8, 1, HEAD, page // 8, 8).permute(0, 1, 3, 2, 4).contiguous()
    o = torch.zeros_like(q)
    arguments = {
        "O": o, "Q": q, "K": k, "V": v, "BT": table,
        "CL": torch.tensor(lengths, dtype=torch.int32), "sclg": math.log2(math.e) * SCALE,
        "mblk": table.shape[1], "batch": 1, "Qs": row_bytes(q, 0), "Bs": row_bytes(k, 0),
        "KVs": row_bytes(k, 1), **more,
    }  # fmt: skip
    launch(kernel, (1, len(lengths), 1), 256, arguments)
    for index, length in enumerate(lengths):
        rows = [
            torch.cat([cache[number, 0] for number in table[index]])[None, :length, None]
            for cache in (keys, values)
        ]
        expected, _ = attention(q[index][None, None], *rows)
        torch.testing.assert_close(o[index].float(), expected[0, 0], rtol=0.02, atol=0.01)


def test_latent() -> None:
    """Decoding with one latent vector of 512 + 64 elements per token for all heads."""
    kernel = library_kernel("aiter_gfx942_mla_MLA_A16W16_1TG_4W_32mx1_16nx1_Coex0_Msk1_QH16.co")
    heads, width, values, lengths, pages = 32, 576, 512, (70, 33), 128
    draw = torch.Generator().manual_seed(4)
    q = torch.randn(len(lengths), heads, width, generator=draw).bfloat16()
    kv = torch.randn(pages, 1, 1, width, generator=draw).bfloat16()
    starts = torch.tensor([0, lengths[0], sum(lengths)], dtype=torch.int32)
    indices = torch.randperm(pages, generator=draw)[: sum(lengths)].int()
    each = torch.arange(len(lengths) + 1, dtype=torch.int32)
    o = torch.zeros(len(lengths), heads, values, dtype=torch.bfloat16)
    arguments = {
        "ptr_R": torch.zeros(o.shape), "ptr_LSE": torch.zeros(len(lengths), heads), "ptr_Q": q,
        "ptr_KV": kv, "ptr_LTP": starts, "ptr_LTD": indices,
        "ptr_LTL": torch.ones(len(lengths), dtype=torch.int32), "scalar": width**-0.5,
        "s_MQA": heads, "s_kv_split": 1, "s_Q_Bs": row_bytes(q, 0), "s_Bs": row_bytes(kv, 0),
        "ptr_QTP": each, "ptr_STP": each, "ptr_RP": o,
    }  # fmt: skip
    launch(kernel, (1, len(lengths), 1), 256, arguments)
    for index in range(len(lengths)):
        rows = kv[indices[starts[index] : starts[index + 1]].long(), 0, 0].float()
        weights = (q[index].float() @ rows.T * width**-0.5).softmax(-1)
        expected = weights @ rows[:, :values]
        torch.testing.assert_close(o[index].float(), expected, rtol=0.02, atol=0.01)
