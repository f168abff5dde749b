"""The importer of mixture-of-experts kernels with hardware counters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calibration.support import importer
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel.ops.moe import FusedMoe

pd = pytest.importorskip("pandas")

COUNTERS: dict[str, Any] = {
    "arch": "gfx950",
    "device": "MI350-class gfx950",
    "token": 16,
    "model_dim": 4096,
    "inter_dim": 384,
    "expert": 128,
    "topk": 8,
    "q_dtype_a": "torch.float8_e4m3fn",
    "q_dtype_w": "torch.float8_e4m3fn",
    "q_type": "QuantType.per_1x128",
    "use_g1u1": 1,
    "stage": "asm_1stage",
    "block_m": 32,
    "kernel_name": "_ZN5aiter47fmoe_bf16_blockscaleFp8_g1u1_vs_silu_1tg_32x256E",
    "bench_time_us": 60.0,
}


def test_rows_with_counters_are_kernels_with_tiles() -> None:
    frame = pd.DataFrame([COUNTERS])
    (case,) = importer(frame.columns).cases(frame)
    assert isinstance(case, Case)
    assert case.op == FusedMoe(
        *(16, 4096, 384, 128, 8),
        dtype="fp8",
        weights="fp8",
        scaling="block",
        part="one-kernel",
        block_m=32,
        tile_n=256,
        assembly=True,
    )
    assert case.device == "mi355x"
    assert case.seconds == pytest.approx(60e-6)
