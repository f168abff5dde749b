"""`pytest --wavecast`: a user's suite as it is, under the emulator and without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
from tests.targets import thorough_beyond
from tests.warm_python import run_module

pytestmark = pytest.mark.torch

CONFTEST = """
import pytest
import torch

GPU = torch.cuda.is_available()


@pytest.fixture
def device():
    return "cuda"
"""

SUITE = """
import pytest
import torch
import triton
from conftest import GPU

import kernels

if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@pytest.mark.skipif(not GPU, reason="no GPU")
@pytest.mark.parametrize("n", [100, 257])
def test_add(n, device):
    x = torch.randn(n, device=device)
    out = torch.empty_like(x)
    kernels.add[(triton.cdiv(n, 256),)](x, x, out, n, BLOCK=256)
    torch.testing.assert_close(out, 2 * x)


def test_wrong():
    x = torch.ones(4, device=DEVICE)
    out = torch.empty_like(x)
    kernels.add[(1,)](x, x, out, 4, BLOCK=256)
    assert out.tolist() == [3, 3, 3, 3]


def test_wild():
    x = torch.ones(4, device="cuda")
    kernels.add[(64,)](x, x, x, 64 * 256, BLOCK=256)


def test_racy():
    x = torch.zeros(1, device="cuda")
    kernels.race[(4,)](x)
    assert 0 <= x.item() < 4


def test_refused():
    x = torch.ones(64, device="cuda")
    kernels.formatted[(1,)](x)
"""

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    total = tl.load(x_ptr + offset, mask=inside) + tl.load(y_ptr + offset, mask=inside)
    tl.store(out_ptr + offset, total, mask=inside)


@triton.jit
def race(x_ptr):
    tl.store(x_ptr, tl.program_id(0))


@triton.jit
def formatted(x_ptr):
    # an access through the format of a buffer, which the emulator refuses
    tl.inline_asm_elementwise(
        "buffer_load_format_x $0, $1, s[4:7], 0 idxen", "=v,v", [tl.load(x_ptr)],
        dtype=tl.float32, is_pure=False, pack=1,
    )
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "test_ops.py").write_text(SUITE)
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of pytest in another process, with no plugin but ours."""
    plugins = ("-p", "wavecast.runtimes.pytest.plugin")
    if "-n2" in arguments:
        plugins += ("-p", "xdist")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_XDIST_WORKER_COUNT", None)
    code, out, err = run_module(
        "pytest", *plugins, *arguments, folder=folder, environment=environment
    )
    return code, out + err


def test_without_the_option_nothing_happens(suite: Path) -> None:
    code, out = run(suite, "-q")
    assert (code, "1 skipped" in out) == (5, True), out
    assert "wavecast" not in out


def test_the_plugin_imports_nothing_until_asked() -> None:
    heavy = "('torch', 'triton', 'llvmlite', 'numpy', 'wavecast.errors')"
    code = "import wavecast.runtimes.pytest.plugin, sys\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "spread",
    [(), pytest.param(("-n2",), marks=pytest.mark.thorough)],
    ids=["one process", "xdist"],
)
def test_kernels_are_executed_and_failures_are_the_user_s(
    suite: Path, spread: tuple[str, ...]
) -> None:
    code, out = run(suite, "--wavecast", "gfx942", "--wavecast-threads", "1", *spread)
    assert code == 1, out
    assert "3 failed, 3 passed" in out
    assert "wavecast: gfx942 (AMD Instinct MI300X), host threads: 1" in out
    assert "wavecast: 4 launches executed on gfx942; 1 test unsupported" in out
    assert "assert [2.0, 2.0, 2.0, 2.0] == [3, 3, 3, 3]" in out
    assert "AddressFault: add: workgroup" in out
    assert "Unsupported: formatted: cannot execute 'buffer_load_format_x" in out
    assert "driver.py" not in out, "a failure ends at the user's launch"


def test_checks_fail_the_test_that_launched(suite: Path) -> None:
    code, out = run(suite, "--wavecast", "gfx942", "--wavecast-check", "-k", "racy or add")
    assert code == 1, out
    assert "1 failed, 2 passed" in out
    assert re.search(r"kernels\.py:\d+: error\[workgroup-race\] race: '\w+_store_", out)
    assert "session.py" not in out
    assert "checks failed: race: workgroup-race" in out


def test_kinds_of_reports_can_be_left_out(suite: Path) -> None:
    check = ("--wavecast", "gfx942", "--wavecast-check", "-k", "racy", "--wavecast-check-ignore")
    code, out = run(suite, *check, "workgroup-race")
    assert (code, "1 passed" in out) == (0, True), out
    code, out = run(suite, *check, "workgroup-rase")
    assert (code, "nearest known: workgroup-race" in out) == (4, True), out


@pytest.mark.parametrize(
    ("choice", "says"),
    thorough_beyond([("xfail", "1 xfailed")], [("skip", "1 skipped"), ("xfail", "1 xfailed")]),
)
def test_unsupported_kernels_can_be_passed_over(suite: Path, choice: str, says: str) -> None:
    code, out = run(
        suite, "--wavecast", "mi300x", "--wavecast-unsupported", choice, "-rsx", "-k", "refused"
    )
    assert code == 0, out
    assert says in out
    assert "unsupported: formatted: cannot execute 'buffer_load_format_x" in out


NVIDIA = ("sm_90", "only AMD GPUs can be executed")


@pytest.mark.parametrize(
    ("gpu", "says"), thorough_beyond([NVIDIA], [("gfx924", "nearest known: gfx942"), NVIDIA])
)
def test_a_wrong_gpu_is_one_line(suite: Path, gpu: str, says: str) -> None:
    code, out = run(suite, "--wavecast", gpu)
    assert code == 4
    assert out.startswith(f"ERROR: --wavecast {gpu}: ")
    assert says in out
