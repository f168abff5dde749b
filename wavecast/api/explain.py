"""`wavecast.explain`: the machine code of kernels on GPUs, their predicted time, and what limits
them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, overload

from wavecast.api.estimate import Estimate, OperationOptions, explain_operation
from wavecast.api.launch import KernelOptions, LaunchOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import AllFailed, NothingAnalysed, UsageError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import OUTPUT_FILE, NameList, Numbers, OneOf, ScaledNumber

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.compile.inventory import Inventory
    from wavecast.pipeline.explain.result import (
        ConfigurationChoice,
        ExplainReport,
        Explanation,
        Failure,
        ModelLineChange,
        ModelLineTime,
    )
    from wavecast.pipeline.explain.steps import Given

SEVERITIES: Final = ("note", "warning", "error")


@dataclass(frozen=True, kw_only=True)
class ScriptOptions(Options):
    """How the kernels of a script are captured."""

    configs: str = option(
        "first",
        "Autotuned kernels: the first, all, or the fastest configuration.",
        values=OneOf(("first", "all", "best")),
    )
    timeout: float | None = option(
        None,
        "Stop a script after this time and explain what was captured.",
        values=Numbers(0, above=True),
        metavar="SECONDS",
    )
    show_output: bool = option(False, "Print the script's output to stderr. Its numbers are wrong.")


@dataclass(frozen=True, kw_only=True)
class SampleOptions(Options):
    """How launches are predicted."""

    sample: bool = option(False, "Predict from an executed sample of a launch: slower, more exact.")


@dataclass(frozen=True, kw_only=True)
class KernelExplainOptions(SampleOptions, KernelOptions):
    """Options of kernels that are explained, of scripts and of code."""

    NEEDS: ClassVar[Mapping[str, str]] = {"dtype": "flops"}

    flops: float | None = option(
        None, "Useful FLOPs of a launch, instead of deriving them.", values=ScaledNumber()
    )
    bytes: float | None = option(
        None, "Least bytes of a launch, instead of deriving them.", values=ScaledNumber()
    )
    dtype: str = option("", "Dtype that the stated FLOPs are counted in, or that of an operation.")
    what_if: bool = option(False, "Simulate the effect of changes to a kernel.")
    perfetto: Path | None = option(
        None,
        "Write a timeline of one simulated compute unit for Perfetto.",
        values=OUTPUT_FILE,
        metavar="FILE",
    )
    fail_on: str | None = option(
        None, "Exit with 1 when a finding is at least this severe.", values=OneOf(SEVERITIES)
    )
    disable: tuple[str, ...] = option(
        (), "Rules not to run (see wavecast rules).", values=NameList(), metavar="RULE[,RULE…]"
    )

    def launch_facts(self) -> Given:
        """What is stated about launches instead of derived. Raises UnknownName for a rule."""
        from wavecast import rules
        from wavecast.pipeline.explain.steps import Given

        for name in self.disable:
            rules.rule(name)
        return Given(
            flops=self.flops,
            bytes=self.bytes,
            dtype=self.dtype,
            disabled_rules=self.disable,
            what_if=self.what_if,
        )


@dataclass(frozen=True, kw_only=True)
class ScriptExplainOptions(ScriptOptions, KernelExplainOptions):
    """Options of a script whose kernels are explained."""

    replace: bool = option(False, "Also what operators of the library change in compiled graphs.")
    recapture: bool = option(False, "Run the script although nothing it depends on has changed.")


@dataclass(frozen=True, kw_only=True)
class CodeExplainOptions(LaunchOptions, KernelExplainOptions):
    """Options of kernels in code that no script launches."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ScriptExplainOptions, CodeExplainOptions):
    """Options of kernels that are explained."""


@dataclass(frozen=True, kw_only=True)
class ListOptions(KernelOptions):
    """Options of a list of kernels."""

    list: bool = option(
        False, "List the kernels of a code object, a bundle, a library, a program or an archive."
    )


MODES: Final[dict[str, type[Options]]] = {"shape": OperationOptions, "list": ListOptions}
"""The option that changes what is explained -> the options that go with it."""


def explain_options(words: Sequence[Any], stated: Mapping[str, Any]) -> type[Options]:
    """The options that apply to what is explained: a mode, a script or code."""
    mode = next((options for name, options in MODES.items() if stated.get(name)), None)
    return mode or (ScriptExplainOptions if Path(words[0]).suffix == ".py" else CodeExplainOptions)


@dataclass(frozen=True, slots=True, repr=False)
class Explained(ShownResult):
    """Kernels on GPUs. With `fail_on` findings of that severity make the exit code 1. The document
    is `wavecast.explain/1`."""

    report: ExplainReport
    fail_on: str | None = None

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Each kernel on each GPU."""
        return self.report.explanations

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What could not be explained."""
        return self.report.failures

    @property
    def notes(self) -> tuple[str, ...]:
        """How GPUs were chosen, and what was left out."""
        return self.report.notes

    @property
    def inputs(self) -> tuple[str, ...]:
        """What was explained."""
        return self.report.inputs

    @property
    def choices(self) -> tuple[ConfigurationChoice, ...]:
        """The configurations of autotuned kernels that were compared."""
        return self.report.choices

    @property
    def lines(self) -> tuple[ModelLineTime, ...]:
        """The lines of a model under `torch.compile`."""
        return self.report.lines

    @property
    def changes(self) -> tuple[ModelLineChange, ...]:
        """What the kernel library changes in these lines."""
        return self.report.changes

    def render(self, console: Console, *, detail: Any = "normal") -> None:
        from wavecast.report.explain import terminal

        terminal.render(self.report, console, detail=detail)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.explain import json

        return json.document(self.report)

    def brief(self) -> str:
        """A line per kernel and GPU, and one per finding."""
        from wavecast.report.explain import brief

        return brief.lines(self.to_dict())

    def html(self) -> str:
        from wavecast.report.explain import html

        return html.render(self.report)

    def sarif(self) -> str:
        """The findings as a SARIF log."""
        from wavecast import json_objects, rules
        from wavecast.report.explain import sarif

        return json_objects.dumps(sarif.document(self.report, rules.all_rules()), indent=2)

    def perfetto(self) -> str:
        """A timeline of one compute unit per predicted launch, simulated again with its events.
        Raises NothingAnalysed where no launch was simulated."""
        from wavecast.perfmodel.launches import launch_timing
        from wavecast.report.execution.perfetto_unit import EVENTS, Timeline, dumps

        timelines = [
            Timeline(e.code, profile.program, launch_timing(profile, e.device, events=EVENTS))
            for e in self.explanations
            if (profile := e.predicted.profile) is not None
        ]
        if not timelines:
            raise NothingAnalysed("no launch was simulated, so there is no timeline")
        return dumps(timelines)

    def exit_code(self) -> int:
        severities = SEVERITIES[SEVERITIES.index(self.fail_on) :] if self.fail_on else ()
        return int(any(f.severity in severities for e in self.explanations for f in e.findings))

    def _repr_html_(self) -> str:
        from wavecast.report.explain import html

        return html.fragment(self.report)

    def subject(self) -> str:
        kernels = few([explanation.code.kernel for explanation in self.explanations])
        return (
            f"{kernels} on {few([explanation.device.id for explanation in self.explanations], 6)}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class KernelList(ShownResult):
    """The kernels of a code file. The document is `wavecast.inventory/1`."""

    inventory: Inventory
    path: str

    def render(self, console: Console, *, detail: str = "normal") -> None:  # noqa: ARG002
        from rich.segment import Segment, Segments

        from wavecast.report.explain import inventory

        lines = inventory.lines(self.inventory, self.path)
        while text := "\n".join(islice(lines, _LINES_AT_ONCE)):
            console.print(Segments([Segment(f"{text}\n")]), soft_wrap=True, end="")

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.explain import inventory

        return inventory.document(self.inventory, self.path)

    def subject(self) -> str:
        return self.path


@overload
def explain(
    kernel: str, *, shape: str | Sequence[str], progress: Progress = ..., **options: Any
) -> Estimate: ...


@overload
def explain(
    kernel: str | Path, *, list: Literal[True], progress: Progress = ..., **options: Any
) -> KernelList: ...


@overload
def explain(kernel: Any, *args: Any, progress: Progress = ..., **options: Any) -> Explained: ...


def explain(
    kernel: Any, *args: Any, progress: Progress = silent, **options: Any
) -> Explained | Estimate | KernelList:
    """Explain the kernels of a file, or a Triton kernel as a program launches it.

    `kernel` is the path of a script, HIP file, assembly or code object; then `args` are the
    script's arguments and `options` those of the command line, by the names of `ExplainOptions`.
    With `shape` it is an operation (`estimate`, `OperationOptions`), with `list=True` its kernels
    are only listed. Or it is a `triton.jit` (or autotuned) function, explained as
    `kernel[grid](*args, **options)` would launch it, with `grid`, `arch`, `arch_files`, `flops`,
    `bytes`, `dtype`, `what_if` and `disable` of the options. Tensors stay on the CPU and nothing is
    executed. `arch` names GPUs (`"gfx942,sm_90"` or a list).

    Raises UsageError for a grid or arguments that do not fit `kernel`, and another WavecastError
    when nothing can be explained; single failures are in `failures`.
    """
    if not isinstance(kernel, (str, Path)):
        return _explain_call(kernel, args, options)
    selected = ExplainOptions.among(MODES, options)
    if args and not isinstance(selected, ExplainOptions):
        mode = "shape" if isinstance(selected, OperationOptions) else "list"
        raise UsageError(f"arguments of a script do not apply to --{mode}")
    if isinstance(selected, OperationOptions):
        return explain_operation(str(kernel), selected, progress)
    if isinstance(selected, ListOptions):
        return _list(Path(kernel), selected)
    assert isinstance(selected, ExplainOptions)
    return _explain_file(Path(kernel), tuple(map(str, args)), selected, progress)


def _explain_file(
    path: Path, arguments: tuple[str, ...], options: ExplainOptions, progress: Progress
) -> Explained:
    from wavecast.files import write_text
    from wavecast.perfmodel.ops import OPS, op
    from wavecast.pipeline.explain.run import SourceOptions, explain_path

    if str(path) in OPS and not path.exists():
        raise UsageError(f"{path} needs --shape", hint=op(str(path)).shape_help)
    if path.suffix != ".py":
        of_scripts = ScriptExplainOptions.described().keys() - CodeExplainOptions.described().keys()
        options.check_unstated(of_scripts, f"{path}: it is not a script")
    plan = options.plan(path)
    source = SourceOptions(
        script_args=arguments,
        kernels=options.kernels,
        configs=options.configs,  # type: ignore[arg-type]
        timeout=options.timeout,
        show_output=options.show_output,
        recapture=options.recapture,
        sample=options.sample,
        replace=options.replace,
        plan=plan,
        compiler_options=options.compiler_options,
        given=options.launch_facts(),
    )
    report = explain_path(path, options.selection(path), source, progress)
    if not report.explanations:
        raise AllFailed(map(_failure_text, report.failures))
    if options.what_if:
        report = dataclasses.replace(report, notes=(*report.notes, *_without_what_if(report)))
    explained = Explained(report, options.fail_on)
    if options.perfetto is not None:
        write_text(options.perfetto, explained.perfetto())
    return explained


def _failure_text(failure: Failure) -> str:
    from wavecast.compile.names import readable

    kernel = f"{readable(failure.kernel)} for {failure.target}: " if failure.kernel else ""
    return f"{kernel}{failure.message}" + (f" ({failure.hint})" if failure.hint else "")


def _without_what_if(report: ExplainReport) -> Iterator[str]:
    """Why kernels have no what-ifs: each reason once."""
    from wavecast.compile.names import readable

    kernels: dict[str, list[str]] = {}
    for explanation in report.explanations:
        predicted = explanation.predicted
        if predicted.prediction is None:
            name = f"{readable(explanation.code.kernel)} on {explanation.device.target}"
            kernels.setdefault(predicted.why_not, []).append(name)
    for reason, names in kernels.items():
        yield f"no what-ifs for {', '.join(dict.fromkeys(names))}: {reason}"


def _list(path: Path, options: ListOptions) -> KernelList:
    from wavecast import arch
    from wavecast.compile.inventory import inventory

    targets = tuple(dict.fromkeys(arch.resolve(name).device.target for name in options.arch))
    code_inventory = inventory(path, targets, options.kernels)
    if not code_inventory.entries and not code_inventory.unread:
        raise NothingAnalysed(f"{path}: no kernel matches {options.kernels!r}")
    return KernelList(code_inventory, str(path))


_LINES_AT_ONCE: Final = 1000
"""Lines of a list that are printed together."""
_OF_CALLS: Final = ("arch", "arch_files", "flops", "bytes", "dtype", "what_if", "disable")
"""Options of a kernel that a program launches, unless the kernel has a parameter of that name."""


def _explain_call(kernel: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Explained:
    from wavecast.errors import WavecastError
    from wavecast.pipeline.explain.result import ExplainReport, Failure
    from wavecast.pipeline.explain.run import explain_launches
    from wavecast.runtimes.triton import capture_call

    option_names = [name for name in _OF_CALLS if name not in getattr(kernel, "arg_names", ())]
    explain_options = ExplainOptions.of(
        {name: options[name] for name in option_names if name in options}
    )
    arguments = {
        name: value for name, value in options.items() if name not in (*option_names, "grid")
    }
    grid: Sequence[int] | Callable[..., Sequence[int]] | None = options.get("grid")
    if grid is None:
        raise UsageError("a kernel needs a grid", hint="explain(kernel, …, grid=(64,))")
    selection = explain_options.selection()
    name = getattr(kernel, "__name__", str(kernel))
    launches, errors = [], []
    failures: list[Failure] = []
    for target in selection.targets:
        device = selection.on(target)[0]
        try:
            launches += capture_call(kernel, args, arguments, grid=grid, device=device)
        except WavecastError as error:
            errors.append(error)
            failures.append(Failure(name, target, "compile", error.message, error.hint))
    if len(errors) == len(selection.targets):
        raise errors[0]
    explanations, more = explain_launches(launches, selection, explain_options.launch_facts())
    return Explained(ExplainReport(explanations, (*failures, *more), selection.notes, (name,)))


__all__ = [
    "MODES",
    "ExplainOptions",
    "Explained",
    "KernelList",
    "ListOptions",
    "ScriptOptions",
    "explain",
    "explain_options",
]
