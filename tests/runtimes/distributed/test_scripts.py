"""`wavecast run --gpus N`: scripts written for torchrun, and scripts that spawn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from wavecast.emulate.errors import ExecutionError
from wavecast.errors import NothingAnalysed
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

COPIES = """
import torch
x = torch.arange(8.0, device="cuda:0")
assert x.to("cuda:1").cpu().tolist() == list(range(8))
"""
EARLY = """
pinned = torch.ones(8, pin_memory=True)
x.copy_(pinned, non_blocking=True)
pinned.zero_()
torch.cuda.synchronize()
"""
LEAVING = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
match sys.argv[1]:
    case "early" if rank: os._exit(0)
    case "ended" if rank: sys.exit(0)
    case "code" if rank: os._exit(3)
dist.all_reduce(torch.ones(4, device="cuda"))
dist.barrier()
os._exit(0)
"""


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> None:
    """What running a script in this process changes is restored."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("early", r"^rank 1 left by os._exit before the others: deadlock: .*GPU 0 \(\w+, "
            r"all_reduce of 4 float32 at leaving.py:9\).*GPU 1 runs nothing"),
        ("ended", r"^deadlock: .*GPU 0 \(\w+, all_reduce of 4 float32 .*GPU 1 runs nothing"),
        ("code", r"rank 1: it left by os._exit\(3\)"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("main")
def test_a_rank_that_leaves_by_exit_is_named(tmp_path: Path, ending: str, message: str) -> None:
    script = tmp_path / "leaving.py"
    script.write_text(LEAVING)
    with pytest.raises(ExecutionError, match=message):
        run_script(script, (ending,), "gfx942", count=2)


@pytest.mark.usefixtures("main")
def test_ranks_may_all_leave_by_exit(tmp_path: Path) -> None:
    script = tmp_path / "leaving.py"
    script.write_text(LEAVING)
    ended = run_script(script, ("last",), "gfx942", count=2)
    assert (ended.code, ended.traceback, ended.notes) == (0, "", ())


@pytest.mark.usefixtures("main")
@pytest.mark.parametrize(
    ("text", "code"), [(COPIES, 0), (COPIES + EARLY, 1)], ids=["right", "race"]
)
def test_copies_alone_are_checked(tmp_path: Path, text: str, code: int) -> None:
    script = tmp_path / "copies.py"
    script.write_text(text)
    done = wavecast.run(script, arch="gfx942", gpus=2, once=True, check=True)
    assert done.exit_code() == code
    assert done.checks is not None
    assert [report.kind.rule for report in done.checks.reports] == ["host-race"] * code
    assert "copies and what the host touches were checked" in done.notes[0]


@pytest.mark.usefixtures("main")
def test_a_script_that_uses_no_gpu_is_not_checked(tmp_path: Path) -> None:
    script = tmp_path / "nothing.py"
    script.write_text("import torch\ntorch.ones(3) + 1\n")
    with pytest.raises(NothingAnalysed, match="nothing was checked"):
        wavecast.run(script, arch="gfx942", gpus=2, once=True, check=True)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (TORCHRUN, ["rank 0 of 2", "rank 1 of 2"]),
        (SPAWN, ["0 [2.0, 2.0, 2.0]", "1 [2.0, 2.0, 2.0]"]),
    ],
    ids=["torchrun", "spawn"],
)
@pytest.mark.usefixtures("main")
def test_scripts_with_ranks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    lines: list[str],
) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(text)
    ended = run_script(script, (), "gfx942", count=2)
    assert ended.code == 0, ended.traceback
    assert sorted(capsys.readouterr().out.splitlines()) == lines


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_a_rank_that_exits_with_a_code_is_named(tmp_path: Path, processes: bool) -> None:
    script = tmp_path / "exits.py"
    script.write_text("import os, sys\nif os.environ['RANK'] == '1': sys.exit(3)\n")
    done = wavecast.run(script, arch="gfx942", gpus=2, processes=processes)
    assert (done.code, done.notes) == (3, ("sys.exit(3) raised by rank 1",))
