"""`wavecast.run`: scripts, HIP programs and kernels in files, executed for an AMD GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.checks import CheckOptions, CheckReport
from wavecast.api.launch import CompilerOptions, LaunchOptions
from wavecast.api.result import ShownResult, partial
from wavecast.api.tracing import TraceOptions
from wavecast.errors import InputError, NothingAnalysed, UsageError
from wavecast.json_objects import values
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import PROCESSES, Integers, Numbers, Regex
from wavecast.pipeline.execute.outcome import RunOutcome, broken_off

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.documents.fidelity import KernelFidelityJson
    from wavecast.documents.run import ExecutedKernelJson
    from wavecast.emulate.launch_counts import LaunchCounts
    from wavecast.emulate.trace.result import Trace
    from wavecast.pipeline.execute.execution import Execution
    from wavecast.pipeline.execute.options import ExecutionOptions
    from wavecast.pipeline.plan import Plan
    from wavecast.runtimes.hip_host.launching import LaunchedKernel

DEFAULT_ARCH: Final = "gfx942"
"""What scripts and HIP source are compiled for where nothing is stated."""


@dataclass(frozen=True, kw_only=True)
class EmulationOptions(CheckOptions, TraceOptions):
    """How launches are executed, of scripts, programs and kernels. `SUBJECT` is what has the
    options of a class."""

    NEEDS: ClassVar[Mapping[str, str]] = {**CheckOptions.NEEDS, **TraceOptions.NEEDS}
    SUBJECT: ClassVar[str] = ""

    arch: str = option(
        "",
        "An AMD GPU by name (mi300x) or target.",
        "-a",
        "--arch",
        metavar="GPU",
        default_text=f"the target of the code, or {DEFAULT_ARCH}",
    )
    threads: int | None = option(
        None, "Host threads to run workgroups on.", values=PROCESSES, default_text="all"
    )
    max_instructions: int | None = option(
        None,
        "Abort a launch if a wave executes more instructions.",
        values=Integers(1, (1 << 63) - 1),
        metavar="N",
    )


@dataclass(frozen=True, kw_only=True)
class GpuCount(Options):
    """The GPUs of a script or program."""

    gpus: int = option(
        1, "Script, HIP program: the number of GPUs.", values=Integers(1, 64), metavar="N"
    )


@dataclass(frozen=True, kw_only=True)
class ScriptRunOptions(GpuCount, EmulationOptions):
    """How a script is executed."""

    NEEDS: ClassVar[Mapping[str, str]] = {
        **EmulationOptions.NEEDS,
        "once": "gpus",
        "processes": "gpus",
    }
    EXCLUSIVE: ClassVar = (("processes", "check"),)
    SUBJECT = "a script"

    kernels: str = option(
        "", "Script: execute only kernels whose name matches.", "-k", "--kernels", values=Regex()
    )
    once: bool = option(False, "Script with --gpus: run it once with all GPUs, not once per GPU.")
    processes: bool = option(False, "Script with --gpus: ranks are processes, not threads.")


@dataclass(frozen=True, kw_only=True)
class ProgramRunOptions(GpuCount, CompilerOptions, EmulationOptions):
    """How a HIP program is built and executed."""

    SUBJECT = "a program"

    predict: bool = option(False, "HIP program: predict kernels; events have these times.")


@dataclass(frozen=True, kw_only=True)
class KernelRunOptions(LaunchOptions, EmulationOptions):
    """How one launch of a kernel in a file is executed."""

    NEEDS: ClassVar[Mapping[str, str]] = {
        **EmulationOptions.NEEDS,
        "rtol": "expect",
        "atol": "expect",
    }
    SUBJECT = "a file with kernels (--kernel NAME chooses one)"

    kernel: str = option("", "Code: the kernel to launch, if there are several.", metavar="NAME")
    expect: tuple[str, ...] = option(
        (), "Code: expected contents of an array; exit with 1 if they differ.", metavar="NAME=VALUE"
    )
    rtol: float | None = option(
        None, "Relative tolerance of --expect.", values=Numbers(0), default_text="1e-5"
    )
    atol: float | None = option(
        None, "Absolute tolerance of --expect.", values=Numbers(0), default_text="1e-6"
    )
    save: tuple[str, ...] = option(
        (), "Code: write an array to a .npy file after the launch.", metavar="NAME=FILE"
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions(ScriptRunOptions, ProgramRunOptions, KernelRunOptions):
    """How a script, a program or one launch of a kernel is executed."""

    EXCLUSIVE: ClassVar = ScriptRunOptions.EXCLUSIVE

    NEEDS: ClassVar[Mapping[str, str]] = {**ScriptRunOptions.NEEDS, **KernelRunOptions.NEEDS}

    def plan(self, *paths: Path) -> Plan:
        """The launch with what is expected and saved. Raises as that of `LaunchOptions`."""
        from wavecast.pipeline.plan import ATOL, RTOL, named_value

        plan = super().plan(*paths)
        plan = replace(plan, kernel=self.kernel or plan.kernel)
        for name, value in map(named_value, self.expect):
            rtol = RTOL if self.rtol is None else self.rtol
            plan = plan.with_expected(name, value, rtol, ATOL if self.atol is None else self.atol)
        for name, value in map(named_value, self.save):
            plan = plan.with_saved(name, Path(value))
        return plan

    def states_launch(self) -> bool:
        """Whether something of a launch is stated."""
        return self.states(*_LAUNCH)

    def check_writable(self) -> None:
        """Raises InputError for a file of the results that cannot be written."""
        from wavecast.files import check_writable

        for path in (self.check_output, *self.trace_files()):
            if path is not None:
                check_writable(path)


_LAUNCH: Final = KernelRunOptions.described().keys() - ProgramRunOptions.described().keys()


@dataclass(frozen=True, slots=True, repr=False)
class RunReport(ShownResult):
    """What was executed. `code` is what a script or program ended with (128 and the number of a
    signal, which `signal` names), `traceback` that of a script, with the exception `raised` in a
    line, `execution` the launch of a kernel in a file with its arrays, `kernels` the launches of a
    HIP program, `launched` those of everything else; None where nobody knows. `checks` and `traces`
    (one per kernel and grid) are None where nothing is checked and traced. `notes` is for the user.
    A run that breaks off is not `complete`; `stopped` says why. The document is `wavecast.run/1`.
    """

    path: Path
    options: RunOptions
    code: int = 0
    traceback: str = ""
    execution: Execution | None = None
    kernels: Sequence[LaunchedKernel] = ()
    notes: Sequence[str] = ()
    checks: CheckReport | None = None
    traces: Sequence[Trace] | None = None
    complete: bool = True
    launched: LaunchCounts | None = None
    raised: str = ""
    signal: str = ""
    stopped: RunOutcome | None = None

    @property
    def outcome(self) -> RunOutcome:
        """What ended the run, and why."""
        if self.stopped is not None:
            return self.stopped
        code, findings = self.exit_code(), "; ".join(self._findings())
        if self.signal:
            return RunOutcome("signal", code, f"ended by {self.signal}")
        if self.raised:
            return RunOutcome("raised", code, self.raised)
        if self.code:
            ranks = (note for note in self.notes if note.startswith("sys.exit("))
            said = [*self.traceback.strip().splitlines()[:1], *ranks, f"exit code {self.code}"]
            why = said[0]
            return RunOutcome("exited", code, "; ".join(filter(None, (why, findings))))
        return RunOutcome("failed" if code else "passed", code, findings)

    def _findings(self) -> list[str]:
        """What is wrong with the results, a line each."""
        from wavecast.report.execution import runs

        compared = [] if self.execution is None else runs.differences(self.execution)
        errors = [] if self.checks is None else self.checks.reports.errors
        return [*compared, *([f"errors that --check reports: {len(errors)}"] if errors else [])]

    def render(self, console: Console, *, stderr: Console | None = None) -> None:
        """Print the launch and formatted reports; the others to `stderr`, where it is not None: the
        output of a script is separate."""
        from wavecast.report.execution import fidelity, hip_programs, trace_terminal
        from wavecast.report.execution import launch as execution

        stderr = stderr or console
        if self.traceback:
            stderr.out(self.traceback, highlight=False, end="")
        if self.options.predict:
            hip_programs.render(self.kernels, stderr)
        if self.execution is not None:
            execution.render(self.execution, console)
        form = self.options.check_format
        if self.checks is not None and self.options.check_output is None:
            if form == "text" and self.code and not list(self.checks.reports):
                stderr.print(f"check: nothing found before it ended with exit code {self.code}")
            elif form == "text":
                self.checks.render(stderr)
            elif text := self.checks.written(form):
                console.out(text, highlight=False)
        if self.traces is not None and any(self.options.trace_files()):
            trace_terminal.render(self.traces, stderr)
        if self.traces is not None and self.options.fidelity:
            fidelity.render(self.traces, stderr)

    def write(self) -> None:
        """Write the files of reports and traces. Raises InputError."""
        from wavecast.files import write_text
        from wavecast.report.execution import perfetto, traces

        output = self.options.check_output
        if self.checks is not None and output is not None:
            write_text(output, f"{self.checks.written(self.options.check_format)}\n")
        document, timeline = self.options.trace_files()
        if document is not None and self.traces is not None:
            write_text(document, traces.dumps(self.traces, self._fidelity()))
        if timeline is not None and self.traces is not None:
            write_text(timeline, perfetto.dumps(self.traces))

    def _fidelity(self) -> list[KernelFidelityJson] | None:
        """What `fidelity` asks for, None where it does not."""
        from wavecast.report.execution import fidelity

        if self.traces is None or not self.options.fidelity:
            return None
        return fidelity.document(self.traces)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.documents.run import RunDocument
        from wavecast.report.execution import checks, runs, traces
        from wavecast.version import __version__

        outcome = self.outcome
        document = RunDocument(
            wavecast=__version__,
            path=str(self.path),
            complete=self.complete,
            status=outcome.status,
            exit_code=outcome.code,
            reason=outcome.reason,
            traceback=self.traceback,
            notes=[*self.notes],
            launch=runs.launch(self.execution) if self.execution is not None else None,
            kernels=self._executed(),
            checks=checks.check_document([*self.checks.reports], self.checks.reports.traffic)
            if self.checks is not None
            else None,
            traces=traces.trace_document(self.traces)
            if self.traces is not None and any(self.options.trace_files())
            else None,
            fidelity=self._fidelity(),
        )
        return values(document)

    def _executed(self) -> list[ExecutedKernelJson] | None:
        """The kernels that were launched; None where nobody knows."""
        from wavecast.report.execution import runs

        if self.kernels:
            return runs.program_kernels(self.kernels, predicted=self.options.predict)
        return None if self.launched is None else runs.kernels(self.launched.by_size())

    def remarks(self) -> list[str]:
        return [self.traceback.rstrip()] if self.traceback else []

    def messages(self) -> list[str]:
        return [*self.notes]

    def exit_code(self) -> int:
        if self.stopped is not None:
            return self.stopped.code
        wrong = self.execution is not None and not self.execution.as_expected
        return self.code or int(wrong) or (self.checks.exit_code() if self.checks else 0)

    def subject(self) -> str:
        return str(self.path)


def run(
    path: str | Path,
    *arguments: Any,
    progress: Progress = silent,  # noqa: ARG001 - what is executed has an output
    **options: Any,
) -> RunReport:
    """Execute a script's kernels, a HIP program, or a kernel of a HIP file, assembly or code
    object, for an AMD GPU on this machine's processor.

    `arguments` go to a script or program. `torchrun` as `path` with its arguments is the script
    that it starts, as processes of one node (as threads, where checked). A script is run in this
    process as `__main__` with its own `sys.argv`; what it raises is `traceback` of the result.
    `options` are those of the command line, by the names of `RunOptions`.

    Raises UsageError for options that do not fit the file, InputError, CompileError, and
    ExecutionError where a launch breaks off; an error has the checks and traces until then as
    `partial`.
    """
    from wavecast.emulate.launch_counts import LaunchCounts
    from wavecast.pipeline.execute.options import ExecutionOptions

    launcher = Path(path)
    stated, path, arguments = _ranked(RunOptions.of(options), launcher, arguments)
    if not path.exists():
        raise InputError(f"no such file: {path}")
    execute = _executor(path, arguments, stated, ranked=path != launcher)
    reports, mode = stated.reports(), stated.trace_mode()
    stated.check_writable()
    checks = None if reports is None else CheckReport(reports)
    traces = None if mode is None else mode.traces
    report = RunReport(path, stated, checks=checks, traces=traces)
    launched = LaunchCounts()
    report = replace(report, launched=launched)
    settings = ExecutionOptions(
        stated.arch, stated.threads, stated.max_instructions, mode, reports, launched
    )
    with partial(lambda error: _partial_report(report, error)):
        report = _execute_checked(execute, report, settings)
    report.write()
    return report


def _ranked(
    options: RunOptions, path: Path, arguments: Sequence[Any]
) -> tuple[RunOptions, Path, tuple[str, ...]]:
    """What is run: of `torchrun` the script that it starts, in as many processes. Raises as
    `read_torchrun`."""
    from wavecast.runtimes.triton.torchrun import NAME, read_torchrun

    words = tuple(map(str, arguments))
    if path.name != NAME:
        return options, path, words
    script = read_torchrun(words, options.gpus)
    several = script.ranks > 1
    options = replace(options, gpus=script.ranks, processes=several and not options.check)
    return options, script.path, script.arguments


_Execute = Callable[[RunReport, "ExecutionOptions"], RunReport]


def _executor(
    path: Path, arguments: tuple[str, ...], options: RunOptions, *, ranked: bool
) -> _Execute:
    """The function that executes a file, by what it is; `ranked` says that it is a script that is
    started once per rank, whatever it imports. Raises UsageError for options of another
    kind of file, and as `RunOptions.plan`."""
    if path.suffix == ".py" and (options.states_launch() or options.compiler_options):
        raise UsageError(f"{path} is a script: it makes its own launches and arguments")
    if path.suffix == ".py" and options.predict:
        raise UsageError(
            f"--predict is for HIP programs, and {path} is a script",
            hint=f"wavecast explain {path} predicts its kernels",
        )
    kind = _kind(path, launch=options.states_launch())
    names = options.described().keys() - kind.described().keys()
    options.check_unstated(names, f"{path}: it is {kind.SUBJECT}")
    if kind is ScriptRunOptions:
        return lambda report, settings: _script(report, arguments, settings, ranked)
    if kind is ProgramRunOptions:
        return lambda report, settings: _program(report, arguments, settings)
    if arguments:
        raise UsageError(
            f"{path} is not a script; {' '.join(arguments)} needs one",
            hint="--kernel NAME chooses a kernel, --arg NAME=VALUE gives an argument",
        )
    plan = options.plan()
    return lambda report, settings: _code(report, plan, settings)


def _kind(path: Path, *, launch: bool) -> type[EmulationOptions]:
    """The options of a file; `launch` says that a launch of one of its kernels is stated. Raises
    InputError for a file that cannot be read."""
    from wavecast.pipeline.execute.hip_programs import is_program

    if path.suffix == ".py":
        return ScriptRunOptions
    return ProgramRunOptions if not launch and is_program(path) else KernelRunOptions


def run_options(words: Sequence[Any], stated: Mapping[str, Any]) -> type[Options]:
    """The options that apply to a file."""
    path = Path(words[0])
    launch = not stated.keys().isdisjoint(_LAUNCH)
    return _kind(path, launch=launch) if path.is_file() else RunOptions


def _execute_checked(execute: _Execute, report: RunReport, settings: ExecutionOptions) -> RunReport:
    """What `execute` returns. The error of an access that is reported is that the launch ended
    there."""
    from wavecast.compile.names import readable
    from wavecast.emulate.errors import AddressFault, ExecutionError

    try:
        return execute(report, settings)
    except AddressFault as error:
        cause = error.__cause__  # of one that names the GPU too
        fault = cause if isinstance(cause, AddressFault) else error
        reports = settings.check
        if reports is None or not reports.has_access(fault.kernel, fault.instruction):
            raise
        raise ExecutionError(
            f"{readable(fault.kernel)}: the launch ended at the access out of bounds that is "
            "reported"
        ) from error


def _partial_report(report: RunReport, error: BaseException) -> RunReport:
    """The result of a run that breaks off, with its files; without checks that found nothing."""
    report = replace(report, complete=False, stopped=broken_off(error))
    if report.checks is not None and not list(report.checks.reports):
        report = replace(report, checks=None)
    report.write()
    return report


def _script(
    report: RunReport, arguments: tuple[str, ...], settings: ExecutionOptions, ranked: bool
) -> RunReport:
    from wavecast.runtimes.triton import run_script

    streams = sys.stdout, sys.stderr
    try:
        ended = run_script(
            report.path,
            arguments,
            settings.arch or DEFAULT_ARCH,
            threads=settings.threads,
            max_instructions=settings.max_instructions,
            trace=settings.trace or False,
            check=False if settings.check is None else settings.check,
            kernels=report.options.kernels,
            count=report.options.gpus,
            once=report.options.once or (False if ranked else None),
            rank_processes=report.options.processes,
            launched=settings.launched,
        )
    finally:
        sys.stdout, sys.stderr = streams  # a script may replace or delete them
    nothing = not (ended.traceback or ended.executed or ended.checks_more)
    if nothing and settings.check and not ended.code:
        raise NothingAnalysed(f"{ended.notes[0]}: nothing was checked")
    counts = report.launched.by_size() if report.launched is not None else {}
    return replace(
        report,
        launched=None if sum(counts.values()) < ended.executed else report.launched,
        code=ended.code,
        traceback=ended.traceback,
        raised=ended.raised,
        notes=ended.notes,
    )


def _program(
    report: RunReport, arguments: tuple[str, ...], settings: ExecutionOptions
) -> RunReport:
    from wavecast.pipeline.execute.hip_programs import ProgramOptions, run_program
    from wavecast.report.execution import hip_programs

    options = report.options
    program = ProgramOptions(options.gpus, options.compiler_options, options.predict)
    done = run_program(report.path, arguments, settings, program)
    ended = done.ended
    notes = [hip_programs.by_host(done.kernels)]
    if ended.signal:
        notes.append(f"{report.path} ended by {ended.signal_name}")
    elif not done.connected:
        notes.append("the program made no call of HIP")
    return replace(
        report,
        code=128 + ended.signal if ended.signal else ended.code,
        signal=ended.signal_name,
        complete=not ended.signal,
        kernels=done.kernels,
        notes=[note for note in notes if note],
    )


def _code(report: RunReport, plan: Plan, settings: ExecutionOptions) -> RunReport:
    from wavecast.pipeline.execute.execution import execute_code

    execution = execute_code(report.path, plan, settings, report.options.compiler_options)
    clean = report.checks is not None and not report.checks.exit_code()
    notes = [_zeros(execution.zeros)] if clean and execution.zeros else []
    return replace(report, execution=execution, notes=notes)


def _zeros(names: Sequence[str]) -> str:
    """A note on arrays of which nobody stated the contents: two stores of the same value do not
    race, so checks of a kernel that computes zeros from zeros see less."""
    what = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} zeros"
    return (
        f"{what}: races whose stores change nothing are not found; give contents such as "
        f"{names[0]}=f32[4096]:random(1)"
    )


__all__ = ["RunOptions", "RunReport", "run", "run_options"]
