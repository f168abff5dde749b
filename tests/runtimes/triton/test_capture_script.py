"""Scripts run for several targets in processes of their own."""

from __future__ import annotations

import pytest

from tests.runtimes.conftest import GFX942, GFX1100, SM_90
from tests.targets import thorough_beyond
from wavecast.compile.cache import DiskCache
from wavecast.errors import CaptureError, InputError, NothingAnalysed, UsageError
from wavecast.runtimes.triton import capture_script

pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.torch


def test_each_target_gets_its_distinct_launches_with_counts(script):
    path = script(
        """
import sys
assert __name__ == "__main__" and sys.argv[1:] == ["7", "--flag"]
for _ in range(3):
    x, y, out = launch(1000)
launch(500)
assert x.is_cuda and x.device == torch.device("cuda:0")
torch.testing.assert_close(out, x + y)
launch(2000)
"""
    )
    found = capture_script(path, ["7", "--flag"], [GFX942, SM_90], quiet=True)
    assert not found.failures
    for target, threads in (("gfx942", 256), ("sm_90", 128)):
        launches = found.launches[target]
        assert [(item.grid, item.count) for item in launches] == [
            ((4, 1, 1), 3),
            ((2, 1, 1), 1),
            ((8, 1, 1), 1),
        ]
        assert {item.code.target for item in launches} == {target}
        assert launches[0].block == (threads, 1, 1)
        assert launches[0].scalars == {"n": 1000, "BLOCK": 256}
        assert launches[0].code.source == str(path)
    assert "buffer_load" in found.launches["gfx942"][0].code.assembly
    assert any("not executed" in note for note in found.notes)
    assert any("assert_close" in note for note in found.notes)


def test_targets_end_on_their_own(script, tmp_path, monkeypatch):
    """A script that crashes for one target and raises for another: launches before that are kept,
    and nothing is stored in the cache."""
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("WAVECAST_CAPTURE_CACHE", "1")
    path = script(
        """
launch(1000)
if torch.version.hip:
    import ctypes
    ctypes.string_at(0)
launch(500)
raise ValueError("no such model")
"""
    )
    found = capture_script(path, [], [GFX942, SM_90], quiet=True, caching="use")
    assert not list(DiskCache().entries("captures"))
    assert [len(found.launches[target]) for target in ("gfx942", "sm_90")] == [1, 2]
    assert any("SIGSEGV (script.py:" in note and "gfx942" in note for note in found.notes)
    line = len(path.read_text().splitlines())
    raised = f"for sm_90: ValueError: no such model (script.py:{line})"
    assert any(raised in note for note in found.notes)


def test_a_kernel_that_does_not_compile_and_a_run_that_does_not_end(script):
    path = script(
        """
import time

@triton.jit
def refused(x_ptr):
    tl.static_assert(False, "never on any GPU")
    tl.store(x_ptr, 0.0)

refused[(1,)](torch.empty(1, device="cuda"))
launch(1000)
time.sleep(600)
"""
    )
    found = capture_script(path, [], [GFX942], quiet=True, timeout=8)
    assert [item.code.kernel for item in found.launches["gfx942"]] == ["add"]
    (failure,) = found.failures
    assert (failure.kernel, failure.target, failure.stage) == ("refused", "gfx942", "compile")
    assert "never on any GPU" in failure.message
    assert f"{path}:" in failure.message
    assert any("stopped after 8 s" in note for note in found.notes)


REFUSED = [
    ("raise RuntimeError('too early')", "", CaptureError, "RuntimeError: too early (script.py"),
    ("import nosuchmodule", "", CaptureError, "No module named 'nosuchmodule'"),
    ("input()", "", CaptureError, "EOFError"),
    ("import os; os._exit(3)", "", CaptureError, "os._exit(3)"),
    ("print('hello')", "", NothingAnalysed, "without launching a kernel"),
    (
        "launch(1000)\ntorch.testing.assert_close(torch.zeros(4), torch.ones(4))",
        "matmul",
        NothingAnalysed,
        "matches 'matmul' (launched: add)",  # and no word of numbers nobody computed
    ),
    ("launch(1000)\nassert False", "matmul", NothingAnalysed, "no launched kernel matches"),
]


@pytest.mark.parametrize(
    ("body", "kernels", "error", "message"), thorough_beyond(REFUSED[::3] + REFUSED[4:5], REFUSED)
)
def test_nothing_captured_says_why_in_one_line(script, body, kernels, error, message):
    with pytest.raises(error) as caught:
        capture_script(script(body), [], [GFX1100], kernels=kernels, quiet=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_requests_fail_before_anything_runs(script, tmp_path):
    with pytest.raises(InputError, match="no such script"):
        capture_script(tmp_path / "absent.py", [], [GFX942])
    with pytest.raises(UsageError, match="regular expression"):
        capture_script(script("launch(1)"), [], [GFX942], kernels="(")
