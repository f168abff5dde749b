"""Launches of code that no script launches: grid, block and arguments as the user states them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.names import readable
from wavecast.compile.parsing import parse_descriptor
from wavecast.errors import UsageError, WavecastError
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.pipeline.explain.result import Failure
from wavecast.pipeline.plan import Plan
from wavecast.runtimes.module.language import parse


@dataclass(slots=True)
class CodeLaunches:
    """The launches of some kernels, and the kernels whose arguments do not fit the plan.

    `memory` keeps the arrays that the launches' addresses are in.
    """

    launches: list[Launch] = field(default_factory=list)
    refused: list[Failure] = field(default_factory=list)
    sample: bool = False
    memory: dict[int, tuple[Sequence[tuple[int, int]], Any]] = field(default_factory=dict)

    def add(self, codes: Iterable[CodeObject], plan: Plan, device: Device) -> None:
        """Add a launch of every kernel, with the arguments of the plan where it has some.

        Without arguments, a launch of a kernel that takes some has only the grid and the block that
        are stated. `device` is any device of the code's target.
        """
        for code in codes:
            if not plan.is_of(code.kernel, readable(code.kernel)):
                continue
            try:
                if not plan.arguments and not _is_whole(code, plan):
                    self.launches.append(_bare(code, plan))
                    continue
                launch, ranges, values = _with_arguments(code, plan, device)
            except WavecastError as error:
                failure = Failure(code.kernel, device.target, "launch", error.message, error.hint)
                self.refused.append(failure)
                continue
            self.launches.append(launch)
            self.memory[id(launch)] = ranges, values

    def profile_of(self, launch: Launch, device: Device) -> LaunchProfile | None:
        """The profile of an executed sample, None where none is asked for or no arguments are
        known. Raises as `profile_of_sample`."""
        memory = self.memory.get(id(launch))
        if not self.sample or memory is None or not launch.code.is_amd:
            return None
        from wavecast.sampling.executed import profile_of_sample

        return profile_of_sample(launch, memory[0], device, warm=False)


def _is_whole(code: CodeObject, plan: Plan) -> bool:
    """Whether a plan without arguments says all of a launch."""
    sized = plan.grid is not None and plan.block is not None
    return sized and code.is_amd and not parse_descriptor(code).takes_arguments


def _bare(code: CodeObject, plan: Plan) -> Launch:
    """A launch whose arguments are not known. Raises UsageError for a block that the kernel was not
    compiled for."""
    block = plan.block or (code.workgroup_size, 1, 1)
    size = block[0] * block[1] * block[2]
    if plan.block and code.is_amd and (limit := parse_descriptor(code).limit_of_workgroup(size)):
        raise UsageError(f"{readable(code.kernel)}: a workgroup of {size} work-items", hint=limit)
    if size:
        code = replace(code, workgroup_size=size)
    lds = code.dynamic_lds if plan.dynamic_lds is None else plan.dynamic_lds
    return Launch(code, plan.grid or (0, 0, 0), block, dynamic_lds=lds)


def _with_arguments(
    code: CodeObject, plan: Plan, device: Device
) -> tuple[Launch, Sequence[tuple[int, int]], Any]:
    """The launch with its argument segment, the memory it may touch, and what owns that memory."""
    from wavecast.emulate.launch import Emulator
    from wavecast.pipeline.execute.execution import order_arguments, segment_of
    from wavecast.runtimes.module import Function

    if plan.grid is None or plan.block is None:
        raise UsageError(
            f"{readable(code.kernel)} needs a grid and a block to have arguments",
            hint="--grid 64 --block 256",
        )
    kernel = Function(code, device, Emulator(threads=1), None)
    arguments = order_arguments(kernel, plan.arguments)
    values = {name: parse(item.value, item.folder) for name, item in arguments.items()}
    call_arguments: tuple[Sequence[Any], Sequence[Any]] = (list(values.values()), ())
    if any(name.startswith("@") for name in values):
        segment, memory = segment_of(kernel, values)
        call_arguments = [segment], memory
    launch, buffers = kernel.described(
        plan.grid, plan.block, call_arguments[0], plan.dynamic_lds or 0, call_arguments[1],
        plan.cluster,
    )  # fmt: skip
    x, y, z = launch.block
    launch = replace(launch, code=replace(code, workgroup_size=x * y * z))
    scalars = {a.name: a.value for a in launch.arguments if _is_number(a.kind, a.value)}
    return replace(launch, scalars=scalars), buffers.ranges, values


def _is_number(kind: str, value: object) -> bool:
    return kind == "scalar" and isinstance(value, (int, float))


__all__ = ["CodeLaunches"]
