"""How often the waves of a workgroup compute the same products, read from layouts as printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report import sample
from wavecast.perfmodel.replication import replication

MFMA = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [%d, %d], instrShape = [16, 16, 16]}>"
WMMA = "#ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [%s]}}>"


def of(layout: str, m: int, n: int, origin: str = "gfx942") -> float:
    a, b, d = f"{m}x64xf16", f"64x{n}xf16", f"{m}x{n}xf32"
    text = (
        f"#mma = {layout}\nmodule {{\n"
        f"  %0 = tt.dot %a, %b, %c : tensor<{a}, #ttg.dot_op<{{opIdx = 0, parent = #mma}}>> * "
        f"tensor<{b}, #ttg.dot_op<{{opIdx = 1, parent = #mma}}>> -> tensor<{d}, #mma>\n}}\n"
    )
    code = sample.report().explanations[0].code
    return replication(replace(code, target=origin, stages={**code.stages, "ttgir": text}))


@pytest.mark.parametrize(
    ("warps", "m", "n", "times"),
    [((2, 2), 64, 64, 1), ((2, 4), 32, 32, 2), ((4, 1), 16, 64, 4), ((8, 1), 32, 32, 4)],
)
def test_mfma_waves_beyond_the_tile(warps: tuple[int, int], m: int, n: int, times: int) -> None:
    assert of(MFMA % warps, m, n) == times


@pytest.mark.parametrize(
    ("bases", "m", "n", "times"),
    [
        ("[0, 1], [1, 0]", 64, 64, 1),
        ("[0, 1], [0, 2], [1, 0]", 32, 32, 2),
        ("[1, 0], [0, 0]", 64, 64, 2),
    ],
)
def test_wmma_waves_beyond_the_tile(bases: str, m: int, n: int, times: int) -> None:
    assert of(WMMA % bases, m, n) == times


def test_without_a_layout_nothing_is_divided() -> None:
    assert of("#ttg.blocked<{sizePerThread = [1, 1]}>", 64, 64) == 1
    assert replication(sample.report().explanations[0].code) == 1
