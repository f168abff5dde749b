"""The rules on real Triton kernels: each with a launch that shows the problem, and one without.

A kernel is compiled through the captured launch, so that its specialisation is the launch's own.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.rules.support import captured, find, matmul, the_one
from wavecast import rules
from wavecast.rules import RuleInput

pytest.importorskip("triton")
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

UNALIGNED = (4096, 4096, 4099)
OVER_2_GIB = (1_200_000, 128, 1024)


def line_of(text: str) -> int:
    """Line of the first occurrence of `text` in the kernels' file."""
    from pathlib import Path

    from tests.rules import kernels

    source = Path(str(kernels.__file__)).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(source, 1) if text in line)


@cache
def elementwise(name: str, *numbers: int, device: str = "mi300x", **options: int) -> RuleInput:
    """A kernel of two fp32 matrices and some numbers."""
    from tests.rules import kernels

    x, y = torch.empty(4096, 4096), torch.empty(4096, 4096)
    return captured(getattr(kernels, name), x, y, *numbers, device=device, grid=(4096,), **options)


def test_a_good_matrix_product_has_no_finding() -> None:
    found = rules.check(matmul(tile=(128, 128, 64)))
    assert [finding.rule for finding in found if finding.severity != "note"] == []


def test_ocp_fp8_is_emulated_on_gfx942_only() -> None:
    found = the_one(matmul("float8_e4m3fn"), "emulated-dtype")
    assert found.severity == "warning"
    assert "OCP fp8 (e4m3) dot is computed in fp16" in found.message
    assert "float8_e4m3fnuz" in found.advice
    assert found.location is not None
    assert found.location.line == line_of("total = tl.dot")
    assert not find(matmul("float8_e4m3fnuz"), "emulated-dtype")
    assert not find(matmul("float8_e4m3fn", device="mi355x"), "emulated-dtype")
    assert not find(matmul(), "emulated-dtype")


def test_no_8_bit_float_on_gfx1100() -> None:
    found = the_one(matmul("float8_e5m2", device="rx7900xtx"), "emulated-dtype")
    assert "int8" in found.advice


def test_a_tile_too_small_for_matrix_instructions() -> None:
    found = the_one(matmul(tile=(8, 32, 32)), "no-matrix-instructions")
    assert "8x32x32 dot in bf16" in found.message
    assert "M of the tile is 8, the smallest matrix instruction takes 16" in found.evidence
    assert not find(matmul(), "no-matrix-instructions")


def test_a_type_without_matrix_instructions() -> None:
    small = (32, 32, 16)
    found = the_one(matmul("float32", device="rx7900xtx", tile=small), "no-matrix-instructions")
    assert "gfx1100 has no matrix instruction for fp32" in found.evidence
    assert not find(matmul("float32"), "no-matrix-instructions")
    nvidia = the_one(matmul("float32", device="h100_sxm", tile=small), "no-matrix-instructions")
    assert "tf32" in nvidia.advice


def test_fp32_products_and_the_faster_ways() -> None:
    assert "tf32" in the_one(matmul("float32"), "full-precision-dot").advice
    assert "bf16x3" in the_one(matmul("float32", device="mi355x"), "full-precision-dot").advice
    assert not find(matmul("float32", PRECISION="tf32"), "full-precision-dot")
    assert not find(matmul(), "full-precision-dot")


def test_unproven_strides_keep_loads_narrow_and_stop_pipelining() -> None:
    subject = matmul(shape=UNALIGNED)
    stages = the_one(subject, "num-stages-no-effect")
    assert "16 bits per lane" in stages.evidence
    assert "stride_am and stride_bn" in stages.advice
    narrow = find(subject, "narrow-global-access")
    evidence = " ".join(finding.evidence for finding in narrow)
    assert "stride_am = 4099" in evidence
    assert "stride_bn = 4099" in evidence
    for rule in ("num-stages-no-effect", "narrow-global-access"):
        assert not find(matmul(), rule)


def test_one_stage_is_not_asked_to_pipeline() -> None:
    assert not find(matmul(shape=UNALIGNED, num_stages=1), "num-stages-no-effect")


def test_the_loop_over_tiles_around_a_pipelined_loop_is_not_asked_to_pipeline() -> None:
    from tests.rules import kernels

    x, y = (torch.empty((2048, 2048), dtype=torch.bfloat16) for _ in range(2))
    subject = captured(
        kernels.persistent_matmul,
        x,
        y,
        torch.empty(2048, 2048),
        *(256, 16, 2048, 2048, 2048, 2048),
        device="mi300x",
        grid=(64,),
        PROGRAMS=64,
        BLOCK=128,
        BLOCK_K=64,
        num_stages=2,
    )
    assert not find(subject, "num-stages-no-effect")


def test_a_tensor_over_2_gib_loses_buffer_loads_and_gains_branches() -> None:
    subject = matmul(shape=OVER_2_GIB, tile=(128, 128, 64))
    found = the_one(subject, "no-buffer-loads")
    assert found.severity == "warning"
    assert "accesses to a use 64-bit addresses" in found.message
    assert "it spans 2.289 GiB" in found.evidence
    assert the_one(subject, "divergence-in-hot-loop").location is not None
    asynchronous = matmul(shape=OVER_2_GIB, device="mi355x")
    assert find(asynchronous, "no-buffer-loads")
    assert not find(matmul(device="mi455x"), "no-buffer-loads")
    for rule in ("no-buffer-loads", "divergence-in-hot-loop"):
        assert not find(matmul(tile=(128, 128, 64)), rule)


def test_registers_capped_by_waves_per_eu_spill() -> None:
    found = the_one(matmul(tile=(128, 128, 64), waves_per_eu=8), "register-spills")
    assert "waves_per_eu=8" in found.advice
    assert not find(matmul(tile=(128, 128, 64)), "register-spills")


def test_an_unpipelined_loop_of_one_workgroup_waits_for_its_loads() -> None:
    lonely = matmul(tile=(256, 128, 64), num_warps=8, num_stages=1)
    found = the_one(lonely, "full-wait-in-loop")
    assert found.severity == "warning"
    assert "num_stages=2" in found.advice
    assert not find(matmul(tile=(128, 128, 64)), "full-wait-in-loop")


def test_an_unmasked_bound_divides_and_a_masked_one_need_not() -> None:
    odd = the_one(elementwise("copy", 4096 * 4096 - 5, BLOCK=4096), "narrow-global-access")
    assert odd.message.startswith("loads of x and stores of ")
    assert "its mask depends on n" in odd.evidence
    assert not find(elementwise("copy", 4096 * 4096, BLOCK=4096), "narrow-global-access")


def test_a_column_read_row_by_row() -> None:
    found = the_one(elementwise("copy_column_wise", 4096, BLOCK=1024), "uncoalesced-global")
    assert "loads of x" in found.message
    assert not find(elementwise("copy", 4096 * 4096, BLOCK=4096), "uncoalesced-global")


def test_descriptors_without_hardware() -> None:
    found = the_one(
        elementwise("descriptor_copy", 4096, 4096, BLOCK=64), "tensor-descriptors-emulated"
    )
    assert found.location is not None
    assert found.location.line == line_of("tl.make_tensor_descriptor")
    assert not find(elementwise("copy", 4096 * 4096, BLOCK=4096), "tensor-descriptors-emulated")


def test_division_by_an_argument_in_a_loop() -> None:
    found = the_one(elementwise("gather_wrapped", 777, 4, BLOCK=256), "division-in-loop")
    assert "by period in a loop" in found.message
    constant = elementwise("gather_by_constant", 4, PERIOD=777, BLOCK=256)
    assert not find(constant, "division-in-loop")


def test_exponentials_in_a_loop() -> None:
    busy = elementwise("repeated_exponential", 4, BLOCK=1024)
    assert "exp2" in the_one(busy, "transcendental-bound-loop").advice
    assert not find(elementwise("row_sum", 4096, 4096, BLOCK=1024), "transcendental-bound-loop")


def test_tensor_cores_through_mma_sync() -> None:
    found = the_one(matmul(device="h100_sxm", num_warps=2), "old-tensor-core-path")
    assert "num_warps is 2" in found.evidence
    assert not find(matmul(device="h100_sxm"), "old-tensor-core-path")
    assert not find(matmul(), "old-tensor-core-path")
