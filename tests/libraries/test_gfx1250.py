"""AITER's kernels of gfx1250: a clustered GEMM, MLA, and the gradient of attention with its race.

The gradient's last reads of dS from LDS and the first writes of dK and dV to the same words have no
barrier between them: hardware keeps the waves close together, the emulator runs each up to a
barrier.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import wavecast
from tests.libraries.data import fp4_values, packed_fp4
from tests.libraries.launching import OBJECTS, launch, needs_objects
from wavecast import compile as compilers
from wavecast.emulate.check.collected import Reports

pytestmark = [needs_objects, pytest.mark.torch, pytest.mark.thorough]

GEMM = "aiter_gfx1250_mxfp8fp4gemm_f8gemm_bf16_mxfp8fp4_ABpreShuffle_256x256_4x4_ps.co"
MLA = "aiter_gfx1250_mla_mla_a8w8_qh128_1tg_16mx4_64nx1_np.co"
GRADIENT = "aiter_gfx1250_fmha_v3_bwd_bwd_hd128_bf16_a32_pssk.co"
FIRST_WRITE = "ds_store_b128 v152"
FP8 = torch.float8_e4m3fn
BARRIER = "s_wait_dscnt 0x0\n\ts_barrier_signal -1\n\ts_barrier_wait 0xffff\n"


def _kernel(file: str, reports: Reports | bool = False) -> Any:
    return next(iter(wavecast.load(OBJECTS / file, check=reports).values()))


def _tiles(matrix: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """A matrix of bytes as tiles of rows × columns, one after the other."""
    m, n = matrix.shape
    tiles = matrix.view(m // rows, rows, n // columns, columns).transpose(1, 2)
    return tiles.contiguous().view(m, n)


def _closeness(result: torch.Tensor, expected: torch.Tensor) -> float:
    """The cosine of the angle between two tensors."""
    vectors = (tensor.detach().double().flatten() for tensor in (result, expected))
    return float(torch.nn.functional.cosine_similarity(*vectors, dim=0))


@pytest.mark.parametrize("check", [False, True])
def test_gemm_of_a_cluster(check: bool) -> None:
    """Sixteen workgroups of 256 × 256 load each tile of A and B for four of them."""
    m, n, k = 1024, 1024, 512
    draw = torch.Generator().manual_seed(1)
    a = (torch.rand(m, k, generator=draw) * 12 - 6).to(FP8)
    codes = torch.randint(0, 16, (n, k), generator=draw)
    scales = [
        torch.randint(124, 131, (rows, k // 32), generator=draw, dtype=torch.uint8)
        for rows in (m, n)
    ]
    out = torch.zeros(m, n, dtype=torch.bfloat16)
    values = (
        out, _tiles(a.view(torch.uint8), 2, 128), _tiles(packed_fp4(codes), 16, 16),
        *(_tiles(scale, 32, 4) for scale in scales),
        2 * n, k, k // 2, k // 32, k // 32, m, n, k, 1,
    )  # fmt: skip
    reports = Reports()
    _kernel(GEMM, reports if check else False)((4, 4), 128, *values, cluster=(4, 4))
    factors = (2.0 ** (scales[0].float() - 127)).repeat_interleave(32, 1)
    expected = (a.float() * factors) @ fp4_values(codes, scales[1]).T
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2 * expected.abs().max())
    assert not reports.take()


def test_mla() -> None:
    heads, batch, length, page = 128, 2, 200, 64
    pages = -(-length // page)
    draw = torch.Generator().manual_seed(2)
    q = torch.randn(batch, heads, 576, generator=draw).to(FP8)
    cache = torch.randn(batch * pages + 1, page, 576, generator=draw).to(FP8)
    table = torch.randperm(len(cache), generator=draw)[: batch * pages].int()
    q_scale, kv_scale = torch.tensor([0.5]), torch.tensor([0.25])
    padded = torch.zeros(batch, heads, 768, dtype=torch.uint8)
    padded[..., :576] = q.view(torch.uint8)
    parts = cache.view(torch.uint8).split((512, 64), -1)
    stored = torch.cat([part.reshape(len(cache), -1) for part in parts], 1).contiguous()
    out = torch.zeros(batch, 1, heads, 512, dtype=torch.bfloat16)
    arguments = {
        "R": out, "LSE": torch.zeros(batch, 1, heads), "Q": padded, "KV": stored,
        "LTP": torch.arange(batch + 1, dtype=torch.int32) * pages, "LTD": table,
        "LTL": torch.full((batch,), length - (pages - 1) * page, dtype=torch.int32),
        "scalar": 1 / math.sqrt(192), "q_seq_lens": heads, "passes": 1, "total_kv": heads * 576,
        "stride_page": page * 576, "log2_page": 6, "out_16_nosplit": 1,
        "QTP": torch.arange(batch + 1, dtype=torch.int32),
        "STP": torch.arange(batch + 1, dtype=torch.int32), "QROPE": q_scale, "KVROPE": kv_scale,
    }  # fmt: skip
    launch(_kernel(MLA), (1, batch, 2), 128, arguments)
    expected = []
    for query, numbers in zip(q.float() * q_scale, table.view(batch, pages), strict=True):
        keys = cache[numbers.long()].float().reshape(-1, 576)[:length] * kv_scale
        weights = torch.softmax(query @ keys.T / math.sqrt(192), -1)
        expected.append(weights @ keys[:, :512])
    assert _closeness(out[:, 0], torch.stack(expected)) > 0.999  # weights are rounded to fp8


class _Gradient:
    """Two heads of 256 queries and keys."""

    heads, length, depth = 2, 256, 128

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(3)
        shape = (1, self.length, self.heads, self.depth)
        self.q, self.k, self.v, self.d_out = (
            torch.randn(shape, generator=draw).bfloat16() for _ in range(4)
        )
        q, k, v, d_out = (
            tensor.float().transpose(1, 2).requires_grad_()
            for tensor in (self.q, self.k, self.v, self.d_out)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.depth)
        out = torch.softmax(scores, -1) @ v
        self.expected = torch.autograd.grad(out, (q, k, v), d_out)
        self.lse = torch.logsumexp(scores, -1).detach().contiguous()
        self.delta = (d_out * out).sum(-1).detach().contiguous()
        self.dq = torch.zeros(1, self.heads, self.length, self.depth)
        self.dk, self.dv = torch.zeros(shape).bfloat16(), torch.zeros(shape).bfloat16()

    def run(self, kernel: Any) -> None:
        row = 2 * self.depth
        step = self.heads * row
        names = ("q", "k", "v", "do", "dk", "dv")
        strides = {
            f"{kind}_{name}": size
            for name in names
            for kind, size in (("Hs", row), ("BAs", self.length * step), ("Seqs", step))
        }
        known = {parameter.name for parameter in kernel.parameters}
        arguments = {
            "ptr_dq": self.dq, "ptr_dk": self.dk, "ptr_dv": self.dv, "ptr_q": self.q,
            "ptr_k": self.k, "ptr_v": self.v, "ptr_do": self.d_out, "ptr_lse": self.lse,
            "ptr_d": self.delta, "scalar": 1 / math.sqrt(self.depth), "log2e": math.log2(math.e),
            "seq_len_q": self.length, "seq_len_k": self.length, "Ts": 128 * step, "ratio": 1,
            "head_dim_q": self.depth, "head_dim_v": self.depth, "nhead_q": self.heads,
            "Hs_lsed": 4 * self.length, "max_seq_len_dq": self.length,
            **{name: size for name, size in strides.items() if name in known},
        }  # fmt: skip
        launch(kernel, (self.length // 128, self.heads, 1), 128, arguments)


def test_the_race_at_the_end_of_the_gradient_is_reported() -> None:
    reports = Reports()
    _Gradient().run(_kernel(GRADIENT, reports))
    races = [report for report in reports if report.kind.rule == "lds-race"]
    assert any(FIRST_WRITE in str(report) for report in races), [str(r) for r in reports]


def test_with_a_barrier_the_gradient_is_right() -> None:
    (code,) = compilers.load(OBJECTS / GRADIENT)
    before, first, after = code.stages["amdgcn"].partition(FIRST_WRITE)
    assert first
    line = before.rindex("\n", 0, before.rindex("s_wait_alu"))
    text = f"{before[:line]}\n\t{BARRIER}{before[line:]}{first}{after}"
    gradient = _Gradient()
    gradient.run(next(iter(wavecast.load(text.encode(), "gfx1250").values())))
    for result, expected in zip((gradient.dk, gradient.dv), gradient.expected[1:], strict=True):
        assert _closeness(result.transpose(1, 2), expected) > 0.9999
    # dQ is summed in another order, which a later kernel undoes
    values = (
        tensor.detach().flatten().sort().values for tensor in (gradient.dq, gradient.expected[0])
    )
    torch.testing.assert_close(*values, rtol=1e-2, atol=1e-2)
