"""`wavecast model` for a module of PyTorch, an exported program or a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.machines import ReportFiles, TimedResult
from wavecast.api.result import few
from wavecast.options import Progress, option, silent
from wavecast.options.values import FILE, Integers, NameList, Several

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.pipeline.models.replacing import ReplacedModule
    from wavecast.report.systems.chakra import RankedRun
    from wavecast.report.systems.traces import TracedRun
    from wavecast.systems.sources.answer import ModuleAnswer


@dataclass(frozen=True, kw_only=True)
class ModuleOptions(ReportFiles):
    """Options of a module on GPUs."""

    system: tuple[str, ...] = option(
        ("mi300x",), "GPUs: mi300x, h200 …", values=NameList(), metavar="GPU[,GPU]"
    )
    arch_files: tuple[Path, ...] = option(
        (),
        "TOML with facts of a GPU, over those of the package.",
        "--arch-file",
        values=Several(FILE),
    )
    engine: str = option(
        "eager",
        "eager, torch.compile (Inductor's kernels), fusion-rule (a rule for what it fuses), or "
        "wavecast (wavecast.ops), the kernels compiled for the GPU.",
    )
    jobs: int = option(
        1,
        "Processes that compile for --engine wavecast.",
        "-j",
        "--jobs",
        values=Integers(1, 256),
    )
    train: bool = option(False, "Forward and backward pass of a module.")
    optimizer: str = option("", "And a step of sgd, momentum, adam, adamw, fused_adamw.")


@dataclass(frozen=True, slots=True, repr=False)
class ModuleReport(TimedResult):
    """A module on one GPU or several: `answers`, one per GPU. With the engine `wavecast`
    `replaced` has what the kernel library changes on each. The document is `wavecast.graph/1`."""

    WIDTH = 140

    answers: Sequence[ModuleAnswer]
    replaced: Sequence[ReplacedModule] = ()

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import modules

        modules.render(self.answers, console, detail=detail)
        for module in self.replaced:
            modules.render_changes(module, console)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import modules

        return modules.document(self.answers)

    def html(self) -> str:
        from wavecast.report.systems import model_pages

        return model_pages.modules(self.answers)

    def timed_runs(self) -> list[TracedRun]:
        from wavecast.report.systems import traces

        return traces.modules(self.answers)

    def runs_of_ranks(self) -> list[RankedRun]:
        from wavecast.report.systems import chakra

        return chakra.modules(self.answers)

    def _repr_html_(self) -> str:
        from wavecast.report.systems import model_pages

        return model_pages.modules_fragment(self.answers)

    def subject(self) -> str:
        devices = few([answer.device.name for answer in self.answers])
        return f"{self.answers[0].graph.name} on {devices}"


def module(
    source: Any,
    inputs: Any = None,
    options: ModuleOptions | None = None,
    progress: Progress = silent,  # noqa: ARG001
) -> ModuleReport:
    """Predict how long a module of PyTorch takes on GPUs, without a GPU, weights or values.

    `source` is an `nn.Module` (of any device, also meta or fake) with its `inputs` (a tensor, a
    tuple, or a mapping by name), an `ExportedProgram`, or a text like `script.py:factory`,
    `program.pt2` or `kernels.yaml`.

    Raises UsageError for arguments that do not fit, UnknownName for names, InputError for files,
    CaptureError where the module does not run on tensors without values, MissingTool without
    PyTorch.
    """
    from wavecast.arch.systems import system
    from wavecast.pipeline.models.module_answers import module_answers

    options = options or ModuleOptions()
    machines = [system(name, options.arch_files) for name in options.system]
    answers, replaced = module_answers(
        *(source, inputs, machines),
        engine=options.engine,
        train=options.train,
        optimizer=options.optimizer,
        jobs=options.jobs,
    )
    report = ModuleReport(answers, replaced)
    report.write(options)
    return report


__all__ = ["ModuleOptions", "ModuleReport", "module"]
