"""Planted mistakes: the finding at the right line, the right advice first, an honest promise.

`python -m tests.rules.planted` prints the table of all.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.planted.cases import CASES, PlantedKernel
from tests.rules.planted.score import score

QUICK = ("gate_up_interleaved", "int8_gemm_stride", "lds_transpose", "softmax_replicated")
"""Kernels of `make test`; the others are `thorough`."""

ON_NVIDIA = ("softmax_replicated", "row_per_program", "per_head_norm", "tile_labels")
"""Kernels of Triton whose mistake costs time on an NVIDIA GPU too."""


def _parameter(case: PlantedKernel) -> object:
    needs = [pytest.mark.hip] if case.is_hip else [pytest.mark.torch]
    if case.name not in QUICK:
        needs.append(pytest.mark.thorough)
    return pytest.param(case, id=case.name, marks=needs)


@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_a_planted_mistake_is_found(case: PlantedKernel) -> None:
    pytest.importorskip("ziglang" if case.is_hip else "triton")
    found = score(case)
    assert found.at_line, found
    assert found.is_first, found
    assert found.is_close, found


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in CASES if case.name in ON_NVIDIA]
)
def test_a_planted_mistake_is_found_on_nvidia(case: PlantedKernel) -> None:
    pytest.importorskip("triton")
    found = score(replace(case, device="h100_sxm"))
    assert found.at_line, found
    assert found.is_first, found
    assert found.is_close, found
