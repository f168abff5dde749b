"""Assembly is predicted as the source that it comes from, in the same launch, and the laboratory
starts from the same times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.targets import swept
from wavecast import arch
from wavecast import compile as compilers
from wavecast.compile import hip, toolchain
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.errors import MissingTool
from wavecast.lab.evaluation import LabEvaluator, LabSubject, LabTask
from wavecast.lab.schedule.kernel import KernelSchedule, schedule
from wavecast.lab.setting import Setting
from wavecast.perfmodel.predict import predict
from wavecast.pipeline.explain.code_launches import CodeLaunches
from wavecast.pipeline.plan import Plan, Planned
from wavecast.runtimes.triton import capture
from wavecast.sampling.executed import profile_of_sample

SOURCE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void chain(const float* __restrict__ x, float* __restrict__ o, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int i = 0; i < n; ++i) s = fmaf(x[(t + i * 256) & 4095], s, x[(t * 3 + i) & 4095]);
  o[t] = s;
}
extern "C" __global__ void rows(const float* x, float* o, int n, float scale) {
  extern __shared__ float part[];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int step = blockDim.x / 2; step; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) o[blockIdx.x] = part[0] * scale;
}
"""


def plan(grid: int, lds: int, **values: str) -> Plan:
    arguments = {name: Planned(value) for name, value in values.items()}
    return Plan(grid=(grid, 1, 1), block=(256, 1, 1), dynamic_lds=lds, arguments=arguments)


PLANS = {
    "chain": plan(4, 0, x="f32[4096]:random(1)", o="f32[1024]", n="64"),
    "rows": plan(16, 1024, x="f32[16x4096]:random(1)", o="f32[16]", n="4096", scale="0.5"),
}


def by_number(plan: Plan) -> Plan:
    """The plan for code that does not name its arguments."""
    integers = {"64": "i32:64", "4096": "i32:4096"}
    values = [each.value for each in plan.arguments.values()]
    numbered = {str(n): Planned(integers.get(value, value)) for n, value in enumerate(values, 1)}
    return replace(plan, arguments=numbered)


def assembly_of(code: CodeObject, folder: Path) -> CodeObject:
    """The kernel read from its assembly in a file."""
    path = folder / f"{code.kernel}.s"
    path.write_text(code.assembly)
    codes = compilers.load(path, code.target)
    return next(each for each in codes if each.kernel == code.kernel)


def launched(code: CodeObject, plan: Plan, launches: CodeLaunches) -> LabSubject:
    device = arch.load(code.target)
    launches.add([code], plan, device)
    assert not launches.refused
    launch = launches.launches[-1]
    return LabSubject(launch, tuple(launches.memory[id(launch)][0]), (device,))


def figures(subject: LabSubject) -> Mapping[str, Any]:
    """What `lab tune` starts from, and what an executed sample predicts."""
    (result,) = LabEvaluator(subject).evaluate(LabTask(Setting(), "as it is"))
    assert result.figures is not None, result.refused
    assert result.figures.seconds is not None
    (device,) = subject.devices
    sampled = predict(profile_of_sample(subject.launch, subject.ranges, device), device)
    return {"code": result.figures, "sample": (sampled.seconds, sampled.low, sampled.high)}


def cases(found: KernelSchedule) -> tuple[str, ...]:
    return found.execution.cases if found.execution is not None else ()


@pytest.mark.hip
@pytest.mark.parametrize("target", swept(["gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"]))
def test_assembly_of_hip_is_predicted_as_hip(target: str, tmp_path: Path) -> None:
    try:
        toolchain.find(target)
    except MissingTool as error:
        pytest.skip(str(error))
    launches = CodeLaunches()
    for code in hip.compile(SOURCE, target):
        stated = PLANS[code.kernel]
        source = launched(code, stated, launches)
        machine = launched(assembly_of(code, tmp_path), by_number(stated), launches)
        assert figures(machine) == figures(source)
        if code.kernel == "chain":
            device = source.devices[0]
            first, other = (
                schedule(each.launch, each.ranges, device, work=1) for each in (source, machine)
            )
            assert first.loops == other.loops
            assert first.before == other.before
            assert first.saved == other.saved
            assert len(cases(first)) == len(cases(other))


@pytest.mark.parametrize("target", swept(["gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"]))
def test_assembly_of_triton_is_predicted_as_its_kernel(target: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from tests.lab.kernels import product, scaled

    x, out = torch.randn(1000), torch.zeros(1000)
    a, b, c = (torch.randn(128, 128, dtype=torch.float16) for _ in range(3))
    with capture(target) as captured:
        scaled[(4,)](x, out, 1000, BLOCK=256)  # pyright: ignore[reportArgumentType]
        product[(2, 2)](a, b, c, 128, 128, BM=64, BN=64, BK=32)  # pyright: ignore[reportArgumentType]
    launches = CodeLaunches()
    for launch, tensors in zip(captured, [(x, out), (a, b, c)], strict=True):
        spans = [(each.data_ptr(), each.data_ptr() + each.nbytes) for each in tensors]
        source = LabSubject(launch, tuple(spans), (arch.load(target),))
        machine = launched(assembly_of(launch.code, tmp_path), plan_of(launch), launches)
        assert figures(machine) == figures(source)


_NAMES = {"float16": "f16", "float32": "f32"}


def plan_of(launch: Launch) -> Plan:
    """The launch of a Triton kernel as a user states it, its scratch pointers null."""
    arguments = [each for each in launch.arguments if each.kind in ("tensor", "scalar")]
    values = [
        f"{_NAMES[each.dtype]}[{'x'.join(map(str, each.shape))}]:random(1)"
        if each.kind == "tensor"
        else str(each.value)
        for each in arguments
    ]
    numbered = {str(number): Planned(value) for number, value in enumerate([*values, "0", "0"], 1)}
    return Plan(
        grid=launch.grid, block=launch.block, dynamic_lds=launch.dynamic_lds, arguments=numbered
    )
