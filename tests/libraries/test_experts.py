"""AITER's experts of fp8 with scales of blocks: a race of the kernel, and its result without it.

Half of an intermediate row is scaled by the maxima that four waves write to LDS, then the other
half by maxima in the same words. Between the reads of the first and the writes of the second there
is no barrier: hardware keeps the waves close together, the emulator runs each up to a barrier.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import wavecast
from tests.libraries.data import FP8, shuffled
from tests.libraries.launching import OBJECTS, launch, needs_objects
from wavecast import compile as compilers
from wavecast.emulate.check.collected import Reports

pytestmark = [needs_objects, pytest.mark.torch, pytest.mark.thorough]

FILE = "aiter_gfx942_fmoe_fmoe_fp8_blockscale_g1u1_novs_subGU_256.co"
SECOND_MAXIMA = "ds_write_b64 v56, v[30:31] offset:18688"
BLOCK, ROWS = 128, 32
TOKENS, DIM, INNER, EXPERTS = 8, 512, 256, 2


class _Layer:
    """Inputs of a layer with one expert a token, in the layouts AITER's launcher passes."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(7)
        x = torch.randn(TOKENS, DIM // BLOCK, BLOCK, generator=draw)
        self.x, self.x_scale = _quantised(x)
        self.up = torch.randn(EXPERTS, 2 * INNER, DIM, generator=draw).to(FP8)
        self.down = torch.randn(EXPERTS, DIM, INNER, generator=draw).to(FP8)
        shape = (EXPERTS, 2 * INNER // BLOCK, DIM // BLOCK)
        self.up_scale = torch.rand(*shape, generator=draw) * 0.02 + 0.01
        shape = (EXPERTS, DIM // BLOCK, INNER // BLOCK)
        self.down_scale = torch.rand(*shape, generator=draw) + 0.5
        self.expert = torch.randint(0, EXPERTS, (TOKENS,), generator=draw)
        self.weight = torch.rand(TOKENS, generator=draw)

    def arguments(self, out: torch.Tensor) -> dict[str, Any]:
        """The argument block; each expert's tokens fill whole blocks of rows."""
        tokens = torch.full((EXPERTS, ROWS), TOKENS | 1 << 24, dtype=torch.int32)
        weights = torch.zeros(EXPERTS, ROWS)
        for expert in range(EXPERTS):
            own = torch.nonzero(self.expert == expert)[:, 0]
            tokens[expert, : len(own)] = own.int()
            weights[expert, : len(own)] = self.weight[own]
        return {
            "O": out, "X": self.x.view(TOKENS, DIM), "XQ": self.x_scale.T.contiguous(),
            "G": torch.stack([shuffled(one) for one in self.up]), "GQ": self.up_scale,
            "D": torch.stack([shuffled(one) for one in self.down]), "DQ": self.down_scale,
            "U": torch.tensor([tokens.numel(), TOKENS], dtype=torch.int32), "STP": tokens,
            "SW": weights, "SEP": torch.arange(EXPERTS, dtype=torch.int32), "dim": DIM,
            "hdim": INNER, "batch": TOKENS, "eprt": EXPERTS, "Xs": DIM, "GUs": DIM, "Ds": INNER,
            "Os": 2 * DIM, "eGUs": 2 * INNER * DIM, "eDs": INNER * DIM, "topk": 1,
            "eGUQs": 4 * self.up_scale[0].numel(), "eDQs": 4 * self.down_scale[0].numel(),
            "eSMQs": 4 * INNER,
        }  # fmt: skip

    def expected(self) -> torch.Tensor:
        """The layer in float32 with an intermediate row quantised by blocks, as the kernel does."""
        rows = []
        for x, scale, expert in zip(self.x, self.x_scale, self.expert.tolist(), strict=True):
            whole = (x.float() * scale[:, None]).view(DIM)
            gate, up = (_scaled(self.up[expert], self.up_scale[expert]) @ whole).chunk(2)
            codes, scales = _quantised((torch.nn.functional.silu(gate) * up).view(-1, BLOCK))
            inner = (codes.float() * scales[:, None]).view(INNER)
            rows.append(_scaled(self.down[expert], self.down_scale[expert]) @ inner)
        return torch.stack(rows) * self.weight[:, None]


def _quantised(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = values.abs().amax(-1) / torch.finfo(FP8).max
    return (values / scale[..., None]).to(FP8), scale


def _scaled(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return codes.float() * scale.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)


def test_the_race_for_maxima_in_lds_is_reported_at_its_write() -> None:
    reports = Reports()
    kernel = next(iter(wavecast.load(OBJECTS / FILE, check=reports).values()))
    layer = _Layer()
    out = torch.zeros(TOKENS, DIM, dtype=torch.bfloat16)
    launch(kernel, (INNER // 256, EXPERTS, 1), 256, layer.arguments(out))
    races = [report for report in reports if report.kind.rule == "lds-race"]
    assert any(SECOND_MAXIMA in str(report) for report in races), [str(r) for r in reports]


def test_with_a_barrier_between_reads_and_writes_the_result_is_right() -> None:
    (code,) = compilers.load(OBJECTS / FILE)
    text = code.stages["amdgcn"]
    assert text.count(SECOND_MAXIMA) == 2
    with_barrier = text.replace(SECOND_MAXIMA, f"s_barrier\n\t{SECOND_MAXIMA}")
    kernel = next(iter(wavecast.load(with_barrier.encode(), "gfx942").values()))
    layer = _Layer()
    out = torch.zeros(TOKENS, DIM, dtype=torch.bfloat16)
    launch(kernel, (INNER // 256, EXPERTS, 1), 256, layer.arguments(out))
    torch.testing.assert_close(out.float(), layer.expected(), rtol=2e-2, atol=0.1)
