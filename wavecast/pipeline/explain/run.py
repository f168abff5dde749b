"""From an input and a list of GPUs to an `ExplainReport`: capture or load, then explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.names import readable
from wavecast.errors import InputError, NothingAnalysed, UsageError, WavecastError
from wavecast.isa.targets import isa_target
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.pipeline.explain.choosing import best
from wavecast.pipeline.explain.code_launches import CodeLaunches
from wavecast.pipeline.explain.model_lines import ModelLines, line_changes, model_lines
from wavecast.pipeline.explain.result import (
    ConfigurationChoice,
    ExplainReport,
    Explanation,
    Failure,
    ModelLineChange,
)
from wavecast.pipeline.explain.same_kernels import match_kernels
from wavecast.pipeline.explain.selection import Selection
from wavecast.pipeline.explain.sequences import with_sequences
from wavecast.pipeline.explain.steps import Given, explain_launch, with_hint
from wavecast.pipeline.plan import Plan

Progress = Callable[[str], None]
_MOST_KERNELS: Final = 256
"""Kernels of a code file that are explained in one run: more are a library, of which a user wants
some."""
_MOST_NAMES: Final = 20
ProfileOf = Callable[[Launch, Device], LaunchProfile | None]
"""Gives the profile of an executed sample of a launch on a device, None without one."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a run treats its input. `grid`, `block`, `dynamic_lds` and `plan` are for code that no
    script launches."""

    script_args: tuple[str, ...] = ()
    kernels: str = ""
    configs: Literal["first", "all", "best"] = "first"
    timeout: float | None = None
    show_output: bool = False
    recapture: bool = False
    """Run a script also where the capture of an earlier run is still valid."""
    sample: bool = False
    """Execute a sample of a script's launches for their predictions."""
    replace: bool = False
    """Run a script once more, with operators of the library in its compiled graphs."""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    dynamic_lds: int | None = None
    compiler_options: tuple[str, ...] = ()
    plan: Plan = field(default_factory=Plan)
    """The arguments of the launch; its grid, block and dynamic LDS where the fields state none."""
    given: Given = field(default_factory=Given)

    @property
    def launch_plan(self) -> Plan:
        """The launch of code that no script launches."""
        return Plan("", self.grid, self.block, self.dynamic_lds).over(self.plan)


def _silent(_: str) -> None:
    """The default progress reporter."""


def _not_sampled(launch: Launch, device: Device) -> None:
    """The profiles of launches that were not sampled."""
    del launch, device


def explain_path(
    path: str | Path, selection: Selection, options: SourceOptions, progress: Progress = _silent
) -> ExplainReport:
    """Explain a script, HIP or CUDA source, assembly or code object for the selected devices.

    A kernel or target that fails is in `ExplainReport.failures`; the others are still explained.
    Raises WavecastError when the input as a whole cannot be used.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"no such file: {path}", hint="give a script, HIP file, assembly or ELF")
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="give one file in it")
    if path.suffix == ".py" and (options.launch_plan != Plan() or options.compiler_options):
        raise UsageError(f"{path} is a script: it makes its own launches and arguments")
    if options.sample and path.suffix != ".py" and not options.launch_plan.arguments:
        raise UsageError("--sample executes a launch: it needs its arguments", hint="--arg n=4096")
    if options.replace and options.kernels:
        raise UsageError("--replace compares whole lines of a model: leave -k out")
    selection, unread = _readable(path, selection)
    explain = _explain_script if path.suffix == ".py" else _explain_code
    report = explain(path, selection, options, progress)
    return replace(report, failures=(*report.failures, *unread))


def _readable(path: Path, selection: Selection) -> tuple[Selection, list[Failure]]:
    """The devices whose code can be read, and a failure for each other target. Raises UsageError
    or UnknownName where there is none, before anything is compiled or run."""
    errors: dict[str, WavecastError] = {}
    for device in selection.devices:
        if device.vendor == "amd":
            try:
                isa_target(device.target)
            except WavecastError as error:
                errors[device.target] = error
    devices = tuple(device for device in selection.devices if device.target not in errors)
    if not devices:
        raise next(iter(errors.values()))
    failures = [
        Failure(path.name, target, "analyze", error.message, error.hint)
        for target, error in errors.items()
    ]
    return replace(selection, devices=devices), failures


def explain_launches(
    launches: Iterable[Launch],
    selection: Selection,
    conditions: Given,
    progress: Progress = _silent,
    profile_of: ProfileOf = _not_sampled,
) -> tuple[tuple[Explanation, ...], tuple[Failure, ...]]:
    """Explain launches, each on the selected devices of its target.

    Launches with a profile of an executed sample are predicted from it. AMD launches go first so
    that an NVIDIA launch of the same kernel can take over their FLOPs.
    """
    explanations: list[Explanation] = []
    failures: list[Failure] = []
    for launch in sorted(launches, key=lambda launch: not launch.code.is_amd):
        code = launch.code
        for device in selection.on(code.target):
            progress(f"{code.kernel} on {device.name}")
            launch_conditions = (
                conditions if code.is_amd else with_hint(conditions, explanations, launch)
            )
            try:
                sampled = profile_of(launch, device)
                explanations.append(explain_launch(launch, device, launch_conditions, sampled))
            except WavecastError as error:
                failures.append(
                    Failure(code.kernel, device.target, "analyze", error.message, error.hint)
                )
    explanations = with_sequences(explanations, conditions.disabled_rules)
    order = {device.id: index for index, device in enumerate(selection.devices)}
    first: dict[str, int] = {}
    for explanation in explanations:
        first.setdefault(explanation.code.common_symbol, len(first))
    explanations.sort(key=lambda e: (first[e.code.common_symbol], order[e.device.id]))
    return tuple(explanations), tuple(failures)


def _explain_script(
    path: Path, selection: Selection, options: SourceOptions, progress: Progress
) -> ExplainReport:
    from wavecast.runtimes.triton import capture_script

    progress(f"running {path.name} for {', '.join(selection.targets)}")
    capture = capture_script(
        path,
        options.script_args,
        selection.devices,
        kernels=options.kernels,
        configs="first" if options.configs == "first" else "all",
        timeout=options.timeout,
        quiet=not options.show_output,
        sample=options.sample,
        caching="renew" if options.recapture else "use",
    )
    failures = [Failure(f.kernel, f.target, f.stage, f.message, f.hint) for f in capture.failures]
    explanations, more = explain_launches(
        capture.all_launches, selection, options.given, progress, capture.profiles.of
    )
    choices: tuple[ConfigurationChoice, ...] = ()
    if options.configs == "best":
        best_choice = best(explanations)
        explanations, choices = best_choice.explanations, best_choice.choices
    lines = model_lines(explanations, capture.library_calls, selection.devices)
    changes: tuple[ModelLineChange, ...] = ()
    notes = [*selection.notes, *capture.notes, *lines.notes]
    if options.replace:
        changes, replacement_notes = _library_changes(path, selection, options, lines, progress)
        notes += replacement_notes
    return ExplainReport(
        explanations, (*failures, *more), tuple(dict.fromkeys(notes)), (str(path),),
        choices=choices, lines=lines.times, changes=changes,
    )  # fmt: skip


def _library_changes(
    path: Path,
    selection: Selection,
    options: SourceOptions,
    before: ModelLines,
    progress: Progress,
) -> tuple[tuple[ModelLineChange, ...], tuple[str, ...]]:
    """What the kernel library changes in a script's compiled graphs, and notes. Raises UsageError
    for a script without any."""
    from wavecast.runtimes.triton import capture_script
    from wavecast.runtimes.triton.job import PREPARE

    if not before.times:
        raise UsageError(
            f"{path.name}: no launch is of a graph of torch.compile",
            hint="--replace puts operators of the library into such graphs",
        )
    progress(f"running {path.name} with operators of the library")
    capture = capture_script(
        path,
        options.script_args,
        selection.devices,
        timeout=options.timeout,
        quiet=not options.show_output,
        settings={PREPARE: "wavecast.frameworks.torch.inductor:replace_operators"},
    )
    conditions = replace(options.given, outcomes=False)
    explanations, failures = explain_launches(capture.all_launches, selection, conditions, progress)
    after = model_lines(explanations, capture.library_calls, selection.devices)
    failure_notes = [
        f"{readable(failure.kernel)} for {failure.target}: {failure.message}"
        for failure in (*failures, *capture.failures)
    ]
    return line_changes(before.times, after.times), (*capture.notes, *failure_notes, *after.notes)


def _explain_code(
    path: Path, selection: Selection, options: SourceOptions, progress: Progress
) -> ExplainReport:
    from wavecast import compile as compilers

    failures: list[Failure] = []
    errors: list[WavecastError] = []
    notes = list(selection.notes)
    loaded: dict[str, list[CodeObject]] = {}
    for target in selection.targets:
        progress(f"compiling {path.name} for {target}")
        try:
            codes = compilers.load(
                path, target, options=options.compiler_options, kernels=options.kernels
            )
        except WavecastError as error:
            errors.append(error)
            failures.append(Failure(path.name, target, "compile", error.message, error.hint))
            continue
        loaded[target] = _matching(codes, options.kernels)
        if len(loaded[target]) > _MOST_KERNELS:
            raise UsageError(
                f"{path} has {len(loaded[target])} kernels for {target}",
                hint="choose some with -k; --list shows them",
            )
        if options.launch_plan.dynamic_lds is None and any(
            c.origin == "elf" and c.is_amd for c in loaded[target]
        ):
            notes.append(
                f"{path.name}: a code object has no dynamic LDS; give a launch's with --lds"
            )
    code_launches = CodeLaunches(sample=options.sample)
    for target, codes in match_kernels(loaded).items():
        code_launches.add(codes, options.launch_plan, selection.on(target)[0])
    failures.extend(code_launches.refused)
    explanations, more = explain_launches(
        code_launches.launches, selection, options.given, progress, code_launches.profile_of
    )
    failures.extend(more)
    if not explanations and len(errors) == len(selection.targets):
        raise errors[0]
    if not explanations and not failures:
        raise NothingAnalysed(
            f"{path}: no kernel matches {options.kernels!r}",
            hint=_some_names(path, selection.targets, options),
        )
    return ExplainReport(explanations, tuple(failures), tuple(notes), (str(path),))


def _some_names(path: Path, targets: Sequence[str], options: SourceOptions) -> str:
    """The names of some kernels of a file, for one whose pattern matches none."""
    from wavecast import compile as compilers

    names = sorted(
        {
            code.kernel
            for target in targets
            for code in compilers.load(path, target, options=options.compiler_options)
        }
    )
    listing = ", ".join(names[:_MOST_NAMES])
    return f"kernels: {listing}, …" if len(names) > _MOST_NAMES else f"kernels: {listing}"


def _matching(codes: Sequence[CodeObject], pattern: str) -> list[CodeObject]:
    import re

    return [code for code in codes if not pattern or re.search(pattern, code.kernel)]
