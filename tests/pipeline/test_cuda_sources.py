"""One CUDA source explained for GPUs of both vendors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wavecast.compile import CodeObject, cuda, toolchain
from wavecast.errors import MissingTool
from wavecast.pipeline import SourceOptions, explain_path, select
from wavecast.pipeline.explain.same_kernels import match_kernels
from wavecast.pipeline.plan import Plan, Planned
from wavecast.report.explain import summary

WARPS = Path(__file__).parents[1] / "compile" / "data" / "warps.cu"


@pytest.mark.cuda
@pytest.mark.hip
def test_one_source_is_compared_across_vendors() -> None:
    try:
        cuda.find()
        toolchain.find(cuda=True)
    except MissingTool as error:
        pytest.skip(str(error))
    values = {"x": "f16[64,1024]", "out": "f32[64]", "n": "1024"}
    plan = Plan("", (64, 1, 1), (256, 1, 1), 0, {k: Planned(v) for k, v in values.items()})
    options = SourceOptions(kernels="sum", plan=plan)
    report = explain_path(WARPS, select(["h100", "mi300x"]), options)
    assert report.failures == ()
    nvidia, amd = report.explanations
    assert (nvidia.code.target, amd.code.target) == ("sm_90", "gfx942")
    assert nvidia.code.kernel == amd.code.kernel == "_Z3sumPK6__halfPfi"
    (group,) = summary.groups(report)
    assert group.label == "sum"
    assert nvidia.roofline.work.flops == amd.roofline.work.flops
    for found in (nvidia, amd):
        assert found.roofline.work.bytes == 64 * 1024 * 2 + 64 * 4
        assert found.analysis.loops[0].trip_count == 4
        assert found.predicted.prediction is not None


def _code(kernel: str, target: str, line: int) -> CodeObject:
    return CodeObject(kernel, target, "cuda", {}, (), {}, 0, 0, "k.cu", line, "", "", kernel)


def test_kernels_with_several_instances_are_matched_by_their_symbol_only() -> None:
    nvidia = [_code("_Z1fP6__half", "sm_90", 3), _code("_Z1gIiEvv", "sm_90", 9)]
    amd = [
        _code("_Z1fPDF16_", "gfx942", 3),
        _code("_Z1gIiEvv", "gfx942", 9),
        _code("_Z1gIDF16_Evv", "gfx942", 9),
    ]
    found = match_kernels({"sm_90": nvidia, "gfx942": amd})
    assert found["sm_90"] == nvidia
    assert found["gfx942"] == [replace(amd[0], alias="_Z1fP6__half"), *amd[1:]]
    assert found["gfx942"][0].common_symbol == "_Z1fP6__half"
