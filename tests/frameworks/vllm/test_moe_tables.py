"""Configuration tables for the Triton kernels of vLLM and SGLang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from wavecast.cli.main import run  # noqa: E402
from wavecast.frameworks.vllm import moe_tables, product_tables, tables  # noqa: E402
from wavecast.frameworks.vllm.moe_tables import ExpertLayerSizes, align_block_size  # noqa: E402
from wavecast.frameworks.vllm.product_tables import ProductSizes  # noqa: E402

pytestmark = pytest.mark.torch

FORMATS = {"bf16": "1,256", "fp8": "1", "fp8_block": "1", "int8": "1"}
"""Numbers of tokens of the tables of each format."""
SETTINGS = {
    "BLOCK_SIZE_M": "16,64", "BLOCK_SIZE_N": "32", "BLOCK_SIZE_K": "64", "GROUP_SIZE_M": "1",
    "num_warps": "4",
}  # fmt: skip
WRITE = """
import sys
from wavecast.cli.main import run

for arguments in sys.argv[1].split(";"):
    try:
        run(["tune", "--table", *arguments.split(" ")])
    except SystemExit as ended:
        assert not ended.code, ended.code
"""
READ = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = ""
from vllm.model_executor.layers.fused_moe import fused_moe
from vllm.model_executor.layers.quantization.utils import fp8_utils

for module in (fused_moe, fp8_utils):
    module.get_device_name_as_file_name = lambda: "AMD_Instinct_MI300X"
for dtype, block in ((None, None), ("fp8_w8a8", None), ("fp8_w8a8", 128), ("int8_w8a16", None)):
    found = fused_moe.get_moe_configs(8, 128, dtype, block, block)
    assert set(found) == ({1} if dtype else {1, 256}), (dtype, block, found)
    print(found[1]["BLOCK_SIZE_M"], fused_moe.get_config_file_name(8, 128, dtype, [block] * 2))
fp8_utils.os.path.realpath = lambda path: os.environ["VLLM_TUNED_CONFIG_FOLDER"] + "/x"
print(fp8_utils.get_w8a8_block_fp8_configs(256, 384, 128, 128)[16]["BLOCK_SIZE_M"])
"""


@pytest.mark.parametrize(
    ("engine", "format", "ending"),
    [
        ("vllm", "bf16", ".json"),
        ("vllm", "fp8", ",dtype=fp8_w8a8.json"),
        ("vllm", "fp8_block", ",dtype=fp8_w8a8,block_shape=[128,128].json"),
        ("vllm", "int8", ",dtype=int8_w8a16.json"),
        ("sglang", "fp8_block", ",dtype=fp8_w8a8,block_shape=[128, 128].json"),
    ],
)
def test_names_of_experts(engine: str, format: str, ending: str) -> None:
    """Those of the tables that engines have for the same GPU."""
    sizes = ExpertLayerSizes(128, 1024, 4096, 8, format)
    name = moe_tables.file_name(sizes, "mi300x", engine)
    assert name == f"E=128,N=1024,device_name=AMD_Instinct_MI300X{ending}"


def test_names_of_products(tmp_path: Path) -> None:
    """SGLang has a folder per version of Triton."""
    name = product_tables.file_name(ProductSizes(1024, 2048), "mi300x")
    known = "N=1024,K=2048,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128]"
    assert name == f"{known}.json"
    import triton

    path = tables.store(tmp_path, "sglang", name, {1: {"num_warps": 4}})
    folder = "triton_" + triton.__version__.replace(".", "_")
    assert path == tmp_path / "configs" / folder / name
    assert json.loads(path.read_text()) == {"1": {"num_warps": 4}}


def test_rows_in_the_order_of_their_experts() -> None:
    """Expert 0 has one row, 1 none, 2 three: blocks of two."""
    rows, owners, padded = align_block_size(torch.tensor([[2, 0], [2, 2]]), 2, 3)
    assert rows.tolist() == [1, 4, 0, 2, 3, 4]
    assert owners.tolist() == [0, 2, 2]
    assert padded.tolist() == [6]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["experts", "--shape", "8x128"], "--shape 8x128 is not EXPERTSxINTERxHIDDENxTOPK"),
        (["experts", "--shape", "8x0x8x1"], "sizes are positive"),
        (["experts", "--shape", "2x64x64x4"], "4 of 2 experts"),
        (["experts", "--shape", "8x8x8x1", "--dtype", "fp9"], "unknown format of experts 'fp9'"),
        (["fp8-product", "--shape", "8x8", "--engine", "trt"], "unknown engine 'trt'"),
        (["fp8-product", "--shape", "8x8", "--setting", "BLOCK_M=3"], "BLOCK_SIZE_M"),
        (
            ["fp8-product", "--shape", "8x8", "--setting", "BLOCK_M"],
            "is not like BLOCK_SIZE_M=16,64",
        ),
    ],
)
def test_bad_use_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["tune", "--table", *arguments, "-o", str(tmp_path / "new")])
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_tables_that_vllm_reads(tmp_path: Path) -> None:
    """Every format, written by the command and read by vLLM's loaders. A token alone takes the
    small block. In processes that import vLLM with Triton."""
    pytest.importorskip("vllm", reason="needs vLLM: pip install 'wavecast[vllm]'")
    silent = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    environment = {**os.environ, **silent, "VLLM_TUNED_CONFIG_FOLDER": str(tmp_path)}
    environment.pop("WAVECAST_VLLM", None)

    def python(code: str, *arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr
        return done.stdout

    space = " ".join(f"--setting {name}={values}" for name, values in SETTINGS.items())
    common = f"--arch mi300x {space} -o"
    commands = [
        f"experts --shape 8x128x128x2 --dtype {one} --batches {batches} {common} {tmp_path}"
        for one, batches in FORMATS.items()
    ]
    commands.append(f"fp8-product --shape 256x384 --batches 16 {common} {tmp_path / 'configs'}")
    paths = python(WRITE, ";".join(commands)).split()
    assert [Path(path).is_file() for path in paths] == [True] * 5
    read = python(READ).splitlines()
    names = [Path(path).name for path in paths[:4]]
    assert read == [*(f"16 {name}" for name in names), "16"]
    assert json.loads(Path(paths[0]).read_text())["1"] == {
        "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1,
        "num_warps": 4, "num_stages": 2, "waves_per_eu": 0,
    }  # fmt: skip
