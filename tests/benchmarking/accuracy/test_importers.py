"""Other projects' files, brought into the columns of the data sets."""

from __future__ import annotations

import bz2
from pathlib import Path
from typing import Any

import pytest

from wavecast.benchmarking.accuracy import importers, reading
from wavecast.errors import InputError

pytest.importorskip("pandas")

GEMM = """gfx,cu_num,M,N,K,q_dtype_w,libtype,kernelId,splitK,us,kernelName,tflops,bw,errRatio
gfx942,304,16,5120,8192,torch.float8_e4m3fnuz,ck,12,0,20.5,a8w8_256x16x64,65.4,2000,0.0
gfx942,304,32,5120,8192,torch.int8,asm,3,2,21.5,i8gemm,65.4,2000,0.0
"""
OLD_GEMM = """cu_num,M,N,K,kernelId,splitK,us,kernelName
256,128,7168,2048,4,0,11.25,f4gemm
"""
MOE = """cu_num,token,model_dim,inter_dim,expert,topk,act_type,dtype,q_dtype_a,q_dtype_w,q_type,\
use_g1u1,doweight_stage1,block_m,ksplit,us1,kernelName1,err1,us2,kernelName2,err2,us,run_1stage
256,64,7168,256,384,8,ActivationType.Silu,torch.bfloat16,torch.float4_e2m1fn_x2,\
torch.float4_e2m1fn_x2,QuantType.per_1x32,1,0,32,0,30.5,moe1,0.0%,20.5,moe2,0.0%,51.0,0
"""
FIND = (
    "64-56-28-3x3-128-28-14-32-1x1-2x2-1x1-0-NCHW-FP16-F="
    "ConvA:0.25,0,miopenConvolutionFwdAlgoDirect;ConvDirectNaiveConvFwd:2.5,64,x\n"
    "128-28-14-3x3-64-56-28-32-1x1-2x2-1x1-0-NHWC-NHWC-NHWC-FP32-B_g2="
    "miopenConvolutionBwdDataAlgoGEMM:GemmBwd,0.5,128,gemm,<unused>\n"
    "3-4-8-9-1x2x3-5-4-8-9-2-0x0x0-1x1x1-1x1x1-0-NCDHW-BF16-W=ConvC:1e-2,0,y\n"
)
LOGIC = """
- {MinimumRequiredVersion: 4.4.0}
- navi31
- {Architecture: gfx1100, CUCount: 96}
- [Device 73f0]
- {DataType: 4, DestDataType: 0, ComputeDataType: 0, TransposeA: true, TransposeB: false}
- [{SolutionNameMin: Cijk_A}, {SolutionNameMin: Cijk_B}]
- [2, 3, 0, 1]
- - [[512, 1024, 2, 256, 512, 512], [1, 2000.0]]
  - [[64, 64, 1, 64], [0, 0.0]]
- null
"""


def table(path: Path) -> list[dict[Any, Any]]:
    return reading.read(path, importers.all_importers())[0].frame.to_dict("records")


def read(path: Path, text: str) -> list[dict[str, object]]:
    path.write_text(text)
    rows = table(path)
    return [{str(name): value for name, value in row.items()} for row in rows]


def holds(row: dict[str, object], **expected: object) -> bool:
    found = {name: row[name] for name in expected}
    assert found == expected
    return True


def test_a_tuned_gemm_file_with_its_dtypes(tmp_path: Path) -> None:
    first, second = read(tmp_path / "a8w8_bpreshuffle_tuned_gemm.csv", GEMM)
    assert holds(
        first, arch="gfx942", cu_count=304.0, dtype_a="fp8_e4m3fnuz", dtype_out="bf16",
        scaling="per-token A, per-channel B", b_preshuffled=True, M=16, N=5120, K=8192, batch=1,
        library="ck", kernel="a8w8_256x16x64", split_k="0", time_us=20.5,
    )  # fmt: skip
    assert holds(second, dtype_a="int8", library="asm", split_k="2")


def test_an_old_file_says_the_rest_in_its_name(tmp_path: Path) -> None:
    (row,) = read(tmp_path / "a4w4_blockscale_tuned_gemm.csv", OLD_GEMM)
    assert holds(row, arch="gfx950", dtype_a="mxfp4", scaling="1x32 e8m0", b_preshuffled=True)


def test_a_tuned_moe_file(tmp_path: Path) -> None:
    (row,) = read(tmp_path / "tuned_fmoe.csv", MOE)
    assert holds(
        row, arch="gfx950", stage="both", dtype_a="mxfp4", dtype_w="mxfp4", quant="per_1x32",
        act="Silu", tokens=64, experts=384, topk=8, gated=1, time1_us=30.5, time2_us=20.5,
        time_us=51.0, kind="winner",
    )  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_a_find_database(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / f"gfx90a6e.HIP.fdb.txt{'.bz2' if packed else ''}"
    path.write_bytes(bz2.compress(FIND.encode()) if packed else FIND.encode())
    rows = table(path)
    best, naive, backward, deep = rows
    assert holds(
        best, arch="gfx90a", cu_count=110.0, direction="F", dtype="fp16", N=32, C=64, H=56, W=28,
        K=128, R=3, S=3, Ho=28, Wo=14, D=1, pad="1x1", stride="2x2", groups=1, solver="ConvA",
        algo="FwdAlgoDirect", time_us=250.0, best_for_problem=True, layout="NCHW",
    )  # fmt: skip
    assert holds(naive, best_for_problem=False, row_flags="naive_reference_kernel")
    assert holds(
        backward, direction="B", C=64, H=56, K=128, Ho=28, groups=2, solver="GemmBwd",
        algo="BwdDataAlgoGEMM", workspace_bytes=128, layout="NHWC-NHWC-NHWC", dtype="fp32",
    )  # fmt: skip
    assert holds(deep, D=4, H=8, W=9, Z=1, R=2, S=3, C=5, K=3, dtype="bf16", time_us=10.0)


def test_units_of_a_find_database_of_rdna(tmp_path: Path) -> None:
    first, *_ = read(tmp_path / "gfx1030_36.HIP.fdb.txt", FIND)
    assert holds(first, arch="gfx1030", cu_count=72.0)


def test_tensile_logic(tmp_path: Path) -> None:
    first, second = read(tmp_path / "navi31_Cijk.yaml", LOGIC)
    assert holds(
        first, arch="gfx1100", cu_count=96.0, dtype_a="fp16", dtype_out="fp32", transA="T",
        transB="N", M=512, N=1024, K=256, batch=2, kernel="Cijk_B", unit="GFLOPS",
    )  # fmt: skip
    assert first["time_us"] == pytest.approx(2 * 512 * 1024 * 256 * 2 / 2000e9 * 1e6)
    assert second["time_us"] != second["time_us"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gfx90a6e.HIP.fdb.txt", "1-2-3=a:1,2\n", "is not a convolution"),
        ("gfx90a6e.HIP.fdb.txt", FIND.split("=")[0] + "=a:b\n", "is not a time of a solver"),
        ("mine.fdb.txt", FIND, "must start with its target"),
        ("a.yaml", "a: [", "not YAML"),
        ("a.yaml", "- 1\n- 2\n", "not the logic"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, text)


BAD_LOGIC = LOGIC.replace("  - [[64, 64, 1, 64], [0, 0.0]]", "  - [[64, 64, 1, 64], 3]")


@pytest.mark.parametrize(
    ("name", "text", "rows", "reason"),
    [
        ("gfx90a6e.HIP.fdb.txt", FIND + "1-2-3=a:1,2\n", 4, "is not a convolution"),
        ("navi31.yaml", BAD_LOGIC, 1, "unreadable cell: "),
        ("a_tuned_gemm.csv", OLD_GEMM + "256,,1,2,4,0,11.25,f4gemm\n", 1, "unreadable cell: "),
        ("tuned_fmoe.csv", MOE + MOE.splitlines()[1].replace("7168", "wide"), 1, "'wide'"),
    ],
)
def test_a_bad_row_is_counted(tmp_path: Path, name: str, text: str, rows: int, reason: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    table, _ = reading.read(path, importers.all_importers())
    assert len(table.frame) == rows
    ((why, count),) = table.rejected.items()
    assert count == 1
    assert reason in why
