"""The importer of AITER's tables of mixture-of-experts times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wavecast.benchmarking.accuracy import importers
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.moe_tuned import SUPERSEDED, stated, tile_of
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.perfmodel.ops.moe.formats import MoeFormats

pd = pytest.importorskip("pandas")

WINNER: dict[str, Any] = {
    "source_path": "tuned_fmoe.csv",
    "arch": "gfx942",
    "cu_count": 80.0,
    "stage": "both",
    "dtype_a": "fp8_e4m3fnuz",
    "dtype_w": "fp8_e4m3fnuz",
    "quant": "per_Token",
    "tokens": 64,
    "model_dim": 7168,
    "inter_dim": 256,
    "experts": 256,
    "topk": 8,
    "gated": 1,
    "block_m": 32.0,
    "kernel": "",
    "kernel1": "moe_ck2stages_gemm1_256x32x64x256_1x4_TypeCast_v1_F8_F8_B16",
    "kind": "winner",
    "row_flags": "",
    "time_us": 500.0,
}
CANDIDATE = {
    "stage": "stage2",
    "kind": "candidate",
    "kernel": "moe_ck2stages_gemm2_256x32x128x128_1x4_TypeCast_v1_F8_F8_B16",
}


def cases(*rows: dict[str, Any]) -> list[Case]:
    frame = pd.DataFrame(rows)
    importer = importers.by_columns(importers.all_importers(), frame.columns, Path("a.parquet"))
    return [case for case in importer.cases(frame) if isinstance(case, Case)]


def test_a_winner_is_the_layer_with_no_tile() -> None:
    (case,) = cases(WINNER)
    assert case.op == FusedMoe(64, 7168, 256, 256, 8, "fp8", "fp8", "token")
    assert case.device == "mi308x"
    assert case.seconds == pytest.approx(500e-6)
    assert case.labels == {"dtype": "fp8·fp8", "scaling": "per_Token", "part": "layer"}


def test_a_board_that_a_row_does_not_state_is_not_guessed() -> None:
    """Rows of AITER's first tuner name a target; of gfx942 there are boards with 80 and 304 CUs."""
    for row in ({k: v for k, v in WINNER.items() if k != "cu_count"}, WINNER | {"cu_count": None}):
        (case,) = cases(row)
        assert (case.device, case.reason) == (
            "",
            "compute units of the gfx942 board are not stated",
        )


def test_a_commit_names_the_board_that_compute_units_do_not_tell() -> None:
    """MI300X and MI325X have 304 CUs; the fastest counts on each."""
    file = "aiter/configs/model_configs/a8w8_blockscale_tuned_fmoe_ds_v3.csv"
    whole = WINNER | {"cu_count": 304.0, "source_path": file}
    named = whole | {"source_date": "2026-07-22T11:13:59+00:00", "time_us": 400.0}
    other = whole | {"source_date": "2026-07-23T11:13:59+00:00"}
    found = cases(whole, named, other | {"tokens": 8})
    assert [case.device for case in found] == ["mi300x", "mi325x", "mi300x"]
    assert all(case.op is not None and not case.reason for case in found)


def test_of_winners_of_one_problem_the_fastest_counts() -> None:
    slow, fast = cases(WINNER, WINNER | {"time_us": 400.0})
    assert (slow.op, slow.reason) == (None, SUPERSEDED)
    assert fast.op is not None
    assert not fast.reason


def test_candidate_kernels_are_alternatives_with_tiles() -> None:
    other = CANDIDATE | {"kernel": "moe_ck2stages_gemm2_256x32x64x128_1x4_v1", "time_us": 90.0}
    first, second = cases(WINNER | CANDIDATE, WINNER | other)
    assert first.op == FusedMoe(
        64, 7168, 256, 256, 8, "fp8", "fp8", "token", part="down", block_m=32, tile_n=128
    )
    assert first.problem == second.problem
    assert first.op != second.op


def test_assembly_kernels_are_named_like_functions() -> None:
    kernel = "_ZN5aiter48fmoe_stage1_bf16_pertokenFp8_g1u1_16x128_4tg_pf3E"
    (case,) = cases(WINNER | CANDIDATE | {"stage": "stage1", "kernel": kernel, "block_m": 16})
    assert case.op == FusedMoe(
        *(64, 7168, 256, 256, 8, "fp8", "fp8", "token"),
        part="gate-up",
        block_m=16,
        tile_n=128,
        assembly=True,
    )


@pytest.mark.parametrize(
    ("kernel", "fields"),
    [
        ("moe_ck2stages_gemm1_64x32x32x128_1x1_v3_FP4X2_FP4X2_B16", {"waves": 1}),
        ("moe_ck2stages_gemm2_256x32x128x128_1x4_v3_F8_F8_B16", {"waves": 4}),
        ("moe_ck2stages_gemm2_64x64x128x128_1x1_FP4X2_FP4X2", {"waves": 1, "by_element": True}),
        ("flydsl_moe1_afp4_wfp4_bf16_t32x64x256", {"resident": 1}),
        ("flydsl_moe1_afp4_wfp4_bf16_t32x64x256_w3_kb7_bnt0", {"resident": 3, "splits": 7}),
        ("flydsl_moe1_afp4_wfp4_bf16_t16x32x256_kb2_go", {"resident": 1, "splits": 2}),
        ("flydsl_moe2_afp4_wfp4_bf16_t32x128x256_reduce", {}),
        ("_ZN5aiter48fmoe_stage1_bf16_pertokenFp8_g1u1_16x128_4tg_pf3E", {"assembly": True}),
    ],
)
def test_names_of_kernels_state_more_than_a_tile(kernel: str, fields: dict[str, object]) -> None:
    plain = {"assembly": False, "waves": 4, "resident": 0, "splits": 1, "by_element": False}
    assert plain | stated(kernel) == plain | fields


def test_scales_of_32_make_fp8_a_microscaled_format() -> None:
    micro = {"arch": "gfx950", "cu_count": 256.0, "quant": "per_1x32", "dtype_a": "fp8_e4m3fn"}
    both, narrow = (
        case.op
        for case in cases(
            WINNER | micro | {"dtype_w": "fp8_e4m3fn"}, WINNER | micro | {"dtype_w": "mxfp4"}
        )
    )
    assert isinstance(both, FusedMoe)
    assert isinstance(narrow, FusedMoe)
    assert both.form == MoeFormats("mxfp8", "mxfp8", "mx")
    assert narrow.form == MoeFormats("mxfp8", "mxfp4", "mx")


@pytest.mark.parametrize(
    ("change", "reason", "lacks"),
    [
        ({"row_flags": "gt_hbm_weight_bw_check_routing"}, "gt_hbm_weight_bw", "op"),
        ({"stage": ""}, "what was timed is not known", "op"),
        ({"quant": "per_9x9"}, "per_9x9", "op"),
        ({"dtype_w": "int3"}, "int3", "op"),
        ({"arch": "gfx942", "cu_count": 7.0}, "no known device", "device"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(
    change: dict[str, Any], reason: str, lacks: str
) -> None:
    (case,) = cases(WINNER | change)
    assert reason in case.reason
    assert not getattr(case, lacks)


@pytest.mark.parametrize(
    ("kernel", "tile"),
    [
        ("moe_ck2stages_gemm1_64x32x32x128_1x1_MulABScaleShuffled_v3", (32, 32)),
        ("flydsl_moe1_afp8_wfp4_bf16_t64x256x256_w3_gui_fp8", (64, 256)),
        ("flydsl_mxmoe_g1_a4w4_128x256x256_xcd4", (128, 256)),
        ("_ZN5aiter47fmoe_stage1_bf16_pertokenFp8_g1u1_32x64_4tg_pf3E", (32, 64)),
        ("_ZN5aiter45fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x512E", (32, 512)),
        ("swiglu_mxfp4_bf16_cktile", (0, 0)),
    ],
)
def test_kernel_names_tell_the_tile(kernel: str, tile: tuple[int, int]) -> None:
    assert tile_of(kernel) == tile
