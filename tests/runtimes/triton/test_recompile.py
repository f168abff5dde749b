"""Captured kernels compiled again: with other options, once per installation of Triton."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from tests.runtimes.triton import kernels  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast.errors import CompileError  # noqa: E402
from wavecast.runtimes.triton import recompile  # noqa: E402


def test_a_kernel_is_compiled_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    x = torch.zeros(256)
    with wavecast.capture("gfx942") as launches:
        kernels.add[(1,)](x, x, x, 256, BLOCK=256)
    code, device = launches[0].code, arch.load("mi300x")
    text = code.stages["ttir"]
    assert isinstance(text, str)
    made = recompile.recompile_kernel(code, text, {"num_warps": 2}, device)
    assert (code.workgroup_size, made.workgroup_size) == (256, 128)

    def fails(*_: object) -> None:
        raise CompileError("compiled once more")

    monkeypatch.setattr(recompile, "_compile", fails)
    assert recompile.recompile_kernel(code, text, {"num_warps": 2}, device) == made
    for options, setting in (({"num_warps": 1}, "TRITON_X"), ({"num_warps": 2}, "TRITON_Y")):
        monkeypatch.setenv(setting, "1")
        with pytest.raises(CompileError, match="once more"):
            recompile.recompile_kernel(code, text, options, device)
