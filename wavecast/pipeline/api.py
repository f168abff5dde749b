"""`wavecast.explain`: the same as the command, for a kernel at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wavecast.errors import UsageError
from wavecast.pipeline.result import Failure, Report
from wavecast.pipeline.run import Options, explain_launches, explain_path
from wavecast.pipeline.selection import select
from wavecast.pipeline.steps import Given


def explain(
    kernel: Any,
    *args: Any,
    grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]] | None = None,
    arch: str | Sequence[str] = "gfx942",
    arch_files: Sequence[str | Path] = (),
    flops: float | None = None,
    bytes: float | None = None,
    **kwargs: Any,
) -> Report:
    """Explain a Triton kernel as `kernel[grid](*args, **kwargs)` would launch it, or a file.

    `kernel` is a `triton.jit` (or autotuned) function, or the path of a script, HIP file, assembly
    or code object; then `args` are the script's arguments. Tensors stay on the CPU and nothing is
    executed. `arch` names GPUs (`"gfx942,sm_90"` or a list); `arch_files` overlay device facts.
    `flops` and `bytes` state the launch's useful work instead of deriving it.

    Raises WavecastError when nothing can be explained; single failures are in `Report.failures`.
    """
    selectors = arch.split(",") if isinstance(arch, str) else list(arch)
    selection = select(selectors, arch_files)
    given = Given(flops=flops, bytes=bytes)
    if isinstance(kernel, (str, Path)):
        if kwargs:
            raise UsageError(f"unknown argument {next(iter(kwargs))!r} for a file")
        options = Options(script_args=tuple(map(str, args)), given=given)
        return explain_path(kernel, selection, options)
    if grid is None:
        raise UsageError("a kernel needs a grid", hint="explain(kernel, …, grid=(64,))")
    from wavecast.integrations.triton import capture_call

    launches = []
    failures: list[Failure] = []
    for target in selection.targets:
        device = selection.on(target)[0]
        launches += capture_call(kernel, args, kwargs, grid=grid, device=device)
    explanations, more = explain_launches(launches, selection, given)
    name = getattr(kernel, "__name__", str(kernel))
    return Report(explanations, (*failures, *more), selection.notes, (name,))
