"""`wavecast run --gpus N`: scripts written for torchrun, and scripts that spawn."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

from wavecast.runtimes.triton import run_script

pytestmark = pytest.mark.torch

TORCHRUN = """
import os, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(5)
a, b = torch.randn(100, device="cuda"), torch.nn.Linear(8, 8).cuda().weight.detach()
for x in (a, b):
    low, high = x.clone(), x.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    assert torch.equal(low, high), "one seed, other numbers"
print(f"rank {rank} of {dist.get_world_size()}\\n", end="")
"""
SPAWN = """
import torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    x = torch.ones(3, device="cuda")
    dist.all_reduce(x)
    print(f"{rank} {x.tolist()}\\n", end="")
if __name__ == "__main__":
    mp.spawn(work, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (TORCHRUN, ["rank 0 of 2", "rank 1 of 2"]),
        (SPAWN, ["0 [2.0, 2.0, 2.0]", "1 [2.0, 2.0, 2.0]"]),
    ],
    ids=["torchrun", "spawn"],
)
def test_scripts_with_ranks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    lines: list[str],
) -> None:
    import sys

    script = tmp_path / "ranks.py"
    script.write_text(text)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    ended = run_script(script, (), "gfx942", count=2)
    assert ended.code == 0, ended.traceback
    assert sorted(capsys.readouterr().out.splitlines()) == lines
