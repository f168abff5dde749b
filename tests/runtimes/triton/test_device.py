"""Triton launches executed: results, autotuning, timers, errors, and scripts run as they are."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from tests.warm_python import run_module  # noqa: E402
from wavecast.emulate.errors import ExecutionError  # noqa: E402
from wavecast.errors import LaunchError, UsageError  # noqa: E402
from wavecast.runtimes.triton import run_script  # noqa: E402
from wavecast.runtimes.triton.device import PausedDevice  # noqa: E402
from wavecast.sampling.estimate import CodeEstimate, Resources  # noqa: E402

kernels = pytest.importorskip("tests.runtimes.triton.kernels")
pytestmark = pytest.mark.torch
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


@pytest.mark.parametrize("target", TARGETS)
def test_results_land_in_the_tensors(target: str) -> None:
    n = 1000
    x, y = torch.randn(n), torch.randn(n)
    out = torch.full((n + 24,), 7.0)
    with wavecast.device(target):
        kernels.add[(4,)](x, y, out, n, BLOCK=256)
    assert torch.equal(out[:n], x + y)
    assert torch.equal(out[n:], torch.full((24,), 7.0)), "masked lanes must not write"


def test_code_that_says_cuda() -> None:
    with wavecast.device("gfx942"):
        x = torch.arange(256, device="cuda", dtype=torch.float32)
        out = torch.empty_like(x)
        kernels.add[(1,)](x, x, out, 256, BLOCK=256)
        torch.cuda.synchronize()
        assert torch.equal(out.cpu(), 2 * x.cpu())


def test_a_view_in_the_middle_of_a_storage() -> None:
    storage = torch.arange(2048, dtype=torch.float32)
    x, out = storage[1000:1100], torch.zeros(100)
    with wavecast.device("gfx942"):
        kernels.add[(1,)](x, x, out, 100, BLOCK=256)
    assert torch.equal(out, 2 * x)


def test_autotuning_predicts_every_configuration_and_runs_one() -> None:
    x, out = torch.randn(900), torch.zeros(900)
    with wavecast.device("mi300x") as device:
        kernels.tuned[lambda meta: (-(-900 // meta["BLOCK"]),)](x, out, 900)
        assert device.executed == 1
    assert torch.equal(out, x)
    times = {str(config): time for config, time in kernels.tuned.configs_timings.items()}
    assert len(times) == 2
    assert times[str(kernels.tuned.best_config)] == min(times.values())
    assert all(1e-3 < time[0] < 1e-1 for time in times.values())  # a launch takes microseconds


def test_a_configuration_that_does_not_compile_is_not_chosen() -> None:
    x = torch.zeros(64)
    with wavecast.device("gfx942"):
        kernels.picky[(1,)](x, 64)
    assert kernels.picky.best_config.kwargs == {"BLOCK": 64}
    assert torch.equal(x, torch.ones(64))


def test_without_predictions_the_first_configuration_that_compiles_runs(monkeypatch) -> None:
    def no_estimate(launch, ranges, device) -> CodeEstimate:
        return CodeEstimate(Resources(8, 0, 0, 8.0, False), None, "the loop runs as data says")

    monkeypatch.setattr("wavecast.sampling.estimate.estimate", no_estimate)
    x = torch.zeros(64)
    with (
        pytest.warns(UserWarning, match=r"picky \(BLOCK=64.* on mi300x: the loop runs"),
        wavecast.device("mi300x"),
    ):
        kernels.picky[(1,)](x, 64)
    assert kernels.picky.best_config.kwargs == {"BLOCK": 64}
    assert torch.equal(x, torch.ones(64))


def test_kernels_that_outlive_the_device_end_in_silence(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import gc, torch, wavecast\n"
        "from tests.runtimes.triton import kernels\n"
        "x = torch.ones(256)\n"
        "with wavecast.device('gfx942'):\n"
        "    kernels.add[(1,)](x, x, x, 256, BLOCK=256)\n"
        "kernels.add.device_caches.clear()\n"
        "gc.collect()\n"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_do_bench_gives_predicted_milliseconds() -> None:
    x, out = torch.randn(256), torch.zeros(256)
    with wavecast.device("gfx942") as device:

        def launch() -> None:
            kernels.add[(1,)](x, x, out, 256, BLOCK=256)

        once = triton.testing.do_bench(launch)
        low, high = triton.testing.do_bench(launch, quantiles=[0.2, 0.8])
        (twice,) = triton.testing.do_bench(lambda: (launch(), launch()), return_mode="all")
        assert device.executed == 0
    assert 1e-3 < once == low == high < 1e-1
    assert twice == 2 * once
    assert not out.any()


def test_events_of_torch_have_predicted_times_of_what_is_executed() -> None:
    x, out = torch.randn(256), torch.zeros(256)
    with wavecast.device("gfx942") as device:
        first, middle, last = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        first.record()
        kernels.add[(1,)](x, x, out, 256, BLOCK=256)
        middle.record()
        for _ in range(2):
            kernels.add[(1,)](x, x, out, 256, BLOCK=256)
        last.record()
        once = triton.testing.do_bench(lambda: kernels.add[(1,)](x, x, out, 256, BLOCK=256))
        assert device.executed == 3
    assert first.elapsed_time(middle) == pytest.approx(once)
    assert middle.elapsed_time(last) == pytest.approx(2 * once)
    assert torch.equal(out, x + x)


def test_what_is_no_launch_has_no_time() -> None:
    with pytest.warns(UserWarning, match="launched no kernel"), wavecast.device("gfx942"):
        assert math.isnan(triton.testing.do_bench(lambda: torch.ones(4).sum()))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
@pytest.mark.parametrize("check", [False, True])
def test_kernels_print_and_assert(
    target: str, check: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every work-item prints: four waves of a program."""
    with wavecast.device(target, check=check):
        kernels.asserts[(1,)](torch.ones(1), debug=True)
        assert capfd.readouterr() == ("", "")
        kernels.prints[(3,)](torch.full((1,), 0.5))
        lines = capfd.readouterr().out.splitlines()
        with pytest.raises(ExecutionError, match=r"asserts: .*\(assert, abort\)"):
            kernels.asserts[(1,)](torch.zeros(1), debug=True)
    assert "not one" in capfd.readouterr().err
    texts = [f"pid ({program}, 0, 0) idx () x: 0.500000" for program in range(3)]
    assert Counter(lines) == dict.fromkeys(texts, 256 if target == "gfx942" else 128)


def test_a_grid_beyond_31_bits_is_refused() -> None:
    x = torch.zeros(256)
    with wavecast.device("gfx942"), pytest.raises(LaunchError, match="add: a grid of 2147483648"):
        kernels.add[(2**31,)](x, x, x, 256, BLOCK=256)


def test_a_null_pointer_is_named() -> None:
    x = torch.zeros(0)
    with wavecast.device("gfx942"), pytest.raises(ExecutionError, match="0x0: a null pointer"):
        kernels.add[(1,)](x, x, x, 256, BLOCK=256)


def test_an_address_outside_the_tensors_is_an_error_with_a_line() -> None:
    x, out = torch.randn(256), torch.zeros(256)
    with wavecast.device("gfx942"), pytest.raises(ExecutionError) as caught:
        kernels.add[(1024,)](x, x, out, 1024 * 256, BLOCK=256)
    assert re.search(
        r"add: workgroup .*kernels\.py:\d+.*touches x_ptr\[256\], outside x_ptr \(256 elements\)",
        caught.value.message,
    )


def test_an_empty_grid_runs_nothing() -> None:
    x = torch.zeros(4)
    with wavecast.device("gfx942") as device:
        kernels.add[(0,)](x, x, x, 4, BLOCK=256)
        assert device.executed == 0


def test_only_named_kernels() -> None:
    x, out = torch.ones(256), torch.zeros(256)
    with wavecast.device("gfx942", kernels="nothing"):
        kernels.add[(1,)](x, x, out, 256, BLOCK=256)
    assert not out.any()


def test_not_inside_another_one() -> None:
    with (
        wavecast.device("gfx942"),
        pytest.raises(UsageError, match="inside another"),
        wavecast.capture(arch="gfx942"),
    ):
        pass


def test_a_device_that_pauses_keeps_its_kernels() -> None:
    """Neither Triton nor the emulator looks for a kernel again in a later block."""
    device, launched = PausedDevice("gfx942"), []
    x = torch.randn(256)
    for factor in (1.0, 2.0):
        out = torch.empty(256)
        with device.running() as hooks:
            kernels.add[(1,)](x, factor * x, out, 256, BLOCK=256)
            launched.append((hooks.driver.number, {*hooks._loaded}))
        torch.testing.assert_close(out, (1 + factor) * x)
    assert launched[0] == launched[1]
    assert len(launched[0][1]) == 1
    assert device.hooks.executed == 2
    with device.running(), pytest.raises(UsageError, match="inside another"), device.running():
        pass
    with wavecast.device("gfx942") as other:
        kernels.add[(1,)](x, x, out, 256, BLOCK=256)
    assert other.executed == 1
    device.close()


def test_nvidia_is_refused() -> None:
    with pytest.raises(UsageError, match="only AMD"), wavecast.device("sm_90"):
        pass


BODY = """
import sys
import torch
x = torch.arange(1000, dtype=torch.float32, device="cuda")
out = torch.empty_like(x)
n = 2000 if "wild" in sys.argv else 1000
add[(40 * n // 1000,)](x, x, out, 1000 if n == 1000 else 10000, BLOCK=256)
print("ran", *sys.argv[1:])
torch.testing.assert_close(out, 2 * x if "fail" not in sys.argv else x)
if "five" in sys.argv:
    sys.exit(5)
"""


@pytest.mark.parametrize(
    ("word", "code", "stdout", "stderr"),
    [
        pytest.param("well", 0, "ran well\n", r"^$", marks=pytest.mark.thorough),
        ("five", 5, "ran five\n", r"^$"),
        ("fail", 1, "ran fail\n", r"(?s)^Traceback .*script\.py.*AssertionError"),
        ("wild", 1, "", r"^wavecast: add: workgroup .*script\.py:\d+: .*touches \w+\[\d+\]"),
    ],
)
def test_run(script, word: str, code: int, stdout: str, stderr: str) -> None:
    path: Path = script(BODY)
    command = ("wavecast", "run", str(path), "--arch", "gfx1100", "--", word)
    ended, out, err = run_module(*command, folder=path.parent)
    assert (ended, out) == (code, stdout), err
    assert re.search(stderr, err)


@pytest.mark.parametrize("text", [b"def (:\n", b"\xdd\xff\n", b"#\n\xff\n"])
def test_a_script_that_is_no_python_shows_no_frames_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "script.py"
    path.write_bytes(text)
    ended = run_script(path, [], "gfx942")
    assert ended.code == 1
    assert re.match(r'  File ".*script\.py", line \d\n(.*\n)*SyntaxError: ', ended.traceback)


def test_hooks_around_launches_get_the_metadata_of_the_launch() -> None:
    runtime = triton.knobs.runtime
    x, seen = torch.ones(256), []

    def before(metadata) -> None:
        seen.append(("before", metadata.get()["name"], x.sum().item()))

    def after(metadata) -> None:
        seen.append(("after", metadata.get()["name"], x.sum().item()))

    with wavecast.device("gfx942"):
        runtime.launch_enter_hook.add(before)
        runtime.launch_exit_hook.add(after)
        try:
            kernels.add[(1,)](x, x, x, 256, BLOCK=256)
        finally:
            runtime.launch_enter_hook.remove(before)
            runtime.launch_exit_hook.remove(after)
    assert seen == [("before", "add", 256), ("after", "add", 512)]


@pytest.mark.operators
def test_launches_alone_are_executed_without_pytorch() -> None:
    """PyTorch has no GPU, and tensors are the CPU's; the launch is machine code all the same."""
    from wavecast import ops

    x = torch.randn(4, 64)
    with wavecast.device("gfx942", pytorch=False) as hooks:
        found = ops.rms_norm(x)
        assert x.is_cpu
        assert not torch.cuda.is_available()
    assert hooks.executed == 1
    torch.testing.assert_close(found, torch.nn.functional.rms_norm(x, (64,), eps=1e-6))
    with pytest.raises(UsageError, match="several GPUs"), wavecast.device(count=2, pytorch=False):
        pass
