"""Configuration tables for vLLM's own kernel of experts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from wavecast.integrations.vllm.moe_tables import ExpertLayerSizes, aligned, file_name  # noqa: E402

pytestmark = pytest.mark.torch

WRITE = """
import sys
from pathlib import Path
from wavecast.integrations.vllm.moe_tables import ExpertLayerSizes, write

space = {"BLOCK_SIZE_M": (16, 64), "BLOCK_SIZE_N": (32,), "BLOCK_SIZE_K": (64,),
         "GROUP_SIZE_M": (1,), "num_warps": (4,), "num_stages": (2,), "waves_per_eu": (0,)}
print(write(Path(sys.argv[1]), ExpertLayerSizes(8, 128, 128, 2), "mi300x", (1, 256), space))
"""


def test_name() -> None:
    """That of the tables vLLM has for the same GPU."""
    name = file_name(ExpertLayerSizes(128, 1024, 4096, 8), "mi300x")
    assert name == "E=128,N=1024,device_name=AMD_Instinct_MI300X.json"


def test_rows_in_the_order_of_their_experts() -> None:
    """Expert 0 has one row, 1 none, 2 three: blocks of two."""
    rows, owners, padded = aligned(torch.tensor([[2, 0], [2, 2]]), 2, 3)
    assert rows.tolist() == [1, 4, 0, 2, 3, 4]
    assert owners.tolist() == [0, 2, 2]
    assert padded.tolist() == [6]


def test_table(tmp_path: Path) -> None:
    """In a process that imports vLLM with Triton. A token alone takes the small block."""
    pytest.importorskip("vllm", reason="needs vLLM: pip install 'wavecast[vllm]'")
    environment = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    environment.pop("WAVECAST_VLLM", None)
    command = [sys.executable, "-c", WRITE, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    table = json.loads(
        (tmp_path / file_name(ExpertLayerSizes(8, 128, 128, 2), "mi300x")).read_text()
    )
    assert set(table) == {"1", "256"}
    assert table["1"] == {
        "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1,
        "num_warps": 4, "num_stages": 2, "waves_per_eu": 0,
    }  # fmt: skip
