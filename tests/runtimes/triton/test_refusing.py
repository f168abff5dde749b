"""Configurations that are refused before LLVM."""

from __future__ import annotations

import pytest


def test_configurations_are_refused_before_llvm(tmp_path, monkeypatch) -> None:
    """The bounds of the compiler's own IR: what is refused here the device could not run either."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from triton.backends.amd.compiler import HIPBackend

    from tests.runtimes.conftest import GFX942
    from tests.runtimes.triton import kernels
    from wavecast.runtimes.patching import Patches
    from wavecast.runtimes.triton import capture
    from wavecast.runtimes.triton.complaints import Refused
    from wavecast.runtimes.triton.isolation import in_this_process
    from wavecast.runtimes.triton.refusing import refuse_early

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    lowered = []
    make_llir = HIPBackend.make_llir
    monkeypatch.setattr(
        HIPBackend, "make_llir", staticmethod(lambda *given: lowered.append(1) or make_llir(*given))
    )
    patches = Patches()
    a = torch.zeros(256, 256, dtype=torch.bfloat16)
    try:
        with capture(GFX942) as launches, in_this_process():
            refuse_early(patches, GFX942)
            with pytest.raises(Refused, match=r"takes \d+,\d+ bytes of LDS, .* 65,536"):
                kernels.greedy[(1,)](a, a, a, num_warps=8)
            assert not lowered
            kernels.add[(1,)](a, a, a, 64, BLOCK=64)
        assert len(lowered) == len(launches) == 1
    finally:
        patches.restore()
