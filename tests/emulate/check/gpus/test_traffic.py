"""What kernels move between GPUs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from wavecast.cli.run import command  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.check.gpus.memory import LinkTraffic  # noqa: E402

# pyright: reportArgumentType=false

pytestmark = pytest.mark.torch
N = 256


@triton.jit
def move(x, out, n, BLOCK: tl.constexpr):
    """out = x"""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask), mask=mask)


def test_loads_and_stores_of_peers_are_counted_once_and_by_link() -> None:
    reports = Reports()
    with wavecast.device("gfx942", count=3, check=reports):
        x, out, mine = (torch.zeros(N, device=f"cuda:{owner}") for owner in (0, 2, 1))
        with torch.cuda.device(1):
            for _ in range(2):
                move[(1,)](x, out, N, BLOCK=N)
            move[(1,)](mine, mine, N, BLOCK=N)
        torch.cuda.synchronize()
        del x, out  # freed memory counts
    assert reports.traffic == (
        LinkTraffic(source=0, target=1, read=4 * N, written=0),
        LinkTraffic(source=1, target=2, read=0, written=4 * N),
    )
    assert not list(reports)


def test_one_gpu_has_no_links() -> None:
    reports = Reports()
    with wavecast.device("gfx942", check=reports):
        x = torch.zeros(N, device="cuda")
        move[(1,)](x, torch.empty_like(x), N, BLOCK=N)
    assert reports.traffic == ()


SCRIPT = """
import torch
assert torch.cuda.device_count() == 2
print("ran")
"""


@pytest.fixture
def own_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that runs in this process is `__main__` until the test ends."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("own_main")
def test_a_script_runs_once_with_all_gpus(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert CliRunner().invoke(command, [str(script), "--gpus", "2"]).stdout.count("ran") == 2
    once = CliRunner().invoke(command, [str(script), "--gpus", "2", "--once"])
    assert once.stdout.count("ran") == 1
    assert not once.exit_code


def test_what_is_not_a_script_runs_once_anyway(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text("__global__ void k() {}\nint main() {}")
    done = CliRunner().invoke(command, [str(tmp_path / "k.hip"), "--once", "--gpus", "2"])
    assert str(done.exception).startswith("--once does not apply to")
