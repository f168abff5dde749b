"""`wavecast.explain` and `wavecast.estimate`: what the command does, for a kernel or an operation
at hand; the result shows itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from wavecast.errors import UsageError, WavecastError
from wavecast.pipeline.operations import OperationReport, explain_operation
from wavecast.pipeline.result import ExplainReport, Failure
from wavecast.pipeline.run import ExplainOptions, explain_launches, explain_path
from wavecast.pipeline.selection import select
from wavecast.pipeline.steps import Given
from wavecast.report.shown import ShownResult, few


class Explained(ShownResult, ExplainReport):
    """An `ExplainReport` that notebooks and programs can show and store. The document is
    `wavecast.explain/1`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import json

        return json.document(self)

    def html(self) -> str:
        from wavecast.report import html

        return html.render(self)

    def _repr_html_(self) -> str:
        from wavecast.report import html

        return html.fragment(self)

    def render(self, console: Console) -> None:
        from wavecast.report import terminal

        terminal.render(self, console)

    def subject(self) -> str:
        kernels = few([one.code.kernel for one in self.explanations])
        return f"{kernels} on {few([one.device.id for one in self.explanations], 6)}"


def explain(
    kernel: Any,
    *args: Any,
    grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]] | None = None,
    arch: str | Sequence[str] = "gfx942",
    arch_files: Sequence[str | Path] = (),
    flops: float | None = None,
    bytes: float | None = None,
    **kwargs: Any,
) -> Explained:
    """Explain a Triton kernel as `kernel[grid](*args, **kwargs)` would launch it, or a file.

    `kernel` is a `triton.jit` (or autotuned) function, or the path of a script, HIP file, assembly
    or code object; then `args` are the script's arguments. Tensors stay on the CPU and nothing is
    executed. `arch` names GPUs (`"gfx942,sm_90"` or a list); `arch_files` overlay device facts.
    `flops` and `bytes` state the launch's useful work instead of deriving it.

    Raises UsageError for a grid or arguments that do not fit `kernel`, and another WavecastError
    when nothing can be explained; single failures are in `ExplainReport.failures`.
    """
    selectors = arch.split(",") if isinstance(arch, str) else list(arch)
    selection = select(selectors, arch_files)
    given = Given(flops=flops, bytes=bytes)
    if isinstance(kernel, (str, Path)):
        if kwargs:
            raise UsageError(f"unknown argument {next(iter(kwargs))!r} for a file")
        options = ExplainOptions(script_args=tuple(map(str, args)), given=given)
        return _explained(explain_path(kernel, selection, options))
    if grid is None:
        raise UsageError("a kernel needs a grid", hint="explain(kernel, …, grid=(64,))")
    from wavecast.integrations.triton import capture_call

    name = getattr(kernel, "__name__", str(kernel))
    launches = []
    failures: list[Failure] = []
    errors: list[WavecastError] = []
    for target in selection.targets:
        device = selection.on(target)[0]
        try:
            launches += capture_call(kernel, args, kwargs, grid=grid, device=device)
        except WavecastError as error:
            errors.append(error)
            failures.append(Failure(name, target, "compile", error.message, error.hint))
    if len(errors) == len(selection.targets):
        raise errors[0]
    explanations, more = explain_launches(launches, selection, given)
    return Explained(explanations, (*failures, *more), selection.notes, (name,))


class Estimate(ShownResult, OperationReport):
    """Predictions of operations that notebooks and programs can show and store. The document is
    `wavecast.operation/1`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import operations

        return operations.document(self)

    def render(self, console: Console) -> None:
        from wavecast.report import operations

        operations.render(self, console)

    def subject(self) -> str:
        problems = few([str(one.problem) for one in self.outlooks])
        return f"{problems} on {few([one.device.id for one in self.outlooks], 6)}"


def estimate(
    kind: str,
    *,
    shape: str | Sequence[int] | Sequence[str],
    arch: str | Sequence[str] = "gfx942",
    arch_files: Sequence[str | Path] = (),
    **properties: Any,
) -> Estimate:
    """The best time a good library reaches for an operation, per GPU.

    `kind` is `gemm`, `attention`, `moe`, `conv` …; `shape` its sizes (`"4096x4096x4096"`, `(4096,
    4096, 4096)`, or a list of such texts) and `properties` what else it has: `dtype="fp8"`,
    `causal=True`, `lengths=[512, 1024]`. Each of the result's `outlooks` has a `prediction` in
    seconds with its interval.

    Raises UsageError for sizes or properties the operation does not have, NothingAnalysed where no
    device has a prediction.
    """
    selectors = arch.split(",") if isinstance(arch, str) else list(arch)
    shapes = _shapes(shape)
    options = {name: _text(value) for name, value in properties.items()}
    found = explain_operation(kind, shapes, options, select(selectors, arch_files))
    return Estimate(found.outlooks, found.notes)


def _shapes(shape: str | Sequence[int] | Sequence[str]) -> list[str]:
    if isinstance(shape, str):
        return [shape]
    texts = [str(part) for part in shape]
    if not texts:
        raise UsageError("an operation needs a shape")
    return texts if isinstance(shape[0], str) else ["x".join(texts)]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _explained(report: ExplainReport) -> Explained:
    return Explained(report.explanations, report.failures, report.notes, report.inputs)
