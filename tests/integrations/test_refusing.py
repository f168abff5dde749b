"""Bounds read off TritonGPU IR."""

from __future__ import annotations

import pytest

from wavecast.integrations.triton.refusing import carried_registers

LOOP = (
    "    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %a, %k = %c, %t = %b)"
    " -> ({carried})  : i32 {{\n"
)


@pytest.mark.parametrize(
    ("carried", "threads", "registers"),
    [
        ("tensor<128x128xf32, #mma>, tensor<128x32xi32, #blocked>, i32", 256, 64),
        ("tensor<256x256xf32, #mma>", 128, 512),
        ("tensor<256x64xbf16, #blocked>, tensor<256x64xf32, #mma>", 256, 32 + 64),
        ("tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>, i32", 64, 2),
        ("tensor<64x!tt.ptr<f32>, #blocked>, i32", 64, 0),
    ],
)
def test_registers_of_tensors_carried_around_a_loop(carried, threads, registers) -> None:
    assert carried_registers(LOOP.format(carried=carried), threads) == registers


def test_the_loop_that_carries_most_counts() -> None:
    one = LOOP.format(carried="tensor<128x128xf32, #mma>")
    other = LOOP.format(carried="tensor<64x64xf32, #mma>")
    assert carried_registers(one + "  }\n" + other, 256) == 64
    assert carried_registers("tt.return", 256) == 0


def test_configurations_are_refused_before_llvm(tmp_path, monkeypatch) -> None:
    """The bounds of the compiler's own IR: what is refused here the device could not run either."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from triton.backends.amd.compiler import HIPBackend

    from tests.integrations import kernels
    from tests.integrations.conftest import GFX942
    from wavecast.integrations.patching import Patches
    from wavecast.integrations.triton import capture
    from wavecast.integrations.triton.complaints import Refused
    from wavecast.integrations.triton.isolation import in_this_process
    from wavecast.integrations.triton.refusing import refuse_early

    lowered = []
    make_llir = HIPBackend.make_llir
    monkeypatch.setattr(
        HIPBackend, "make_llir", staticmethod(lambda *given: lowered.append(1) or make_llir(*given))
    )
    patches = Patches()
    a = torch.zeros(256, 256, dtype=torch.bfloat16)
    try:
        with capture(GFX942) as launches, in_this_process():
            refuse_early(patches, 65536)
            with pytest.raises(Refused, match=r"takes \d+,\d+ bytes of LDS, .* 65,536"):
                kernels.greedy[(1,)](a, a, a, num_warps=8)
            assert not lowered
            kernels.add[(1,)](a, a, a, 64, BLOCK=64)
        assert len(lowered) == len(launches) == 1
    finally:
        patches.restore()
