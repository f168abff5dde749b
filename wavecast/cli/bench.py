"""`wavecast bench`: measure operators, functions and scripts, on a GPU or without one."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli.types import NumberRange, RegexParam, count
from wavecast.errors import NothingAnalysed, UsageError, WavecastError

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.bench.measure.session import SessionResult
    from wavecast.bench.store.base import Store

STORE = ".wavecast/bench.sqlite"
INTERRUPTED = 130
_AFTER = "wavecast.script_arguments"
_ON_GPU = ("cache", "timing", "seconds", "samples", "precision", "no_verify")
_ON_EMULATOR = ("execute", "check")
_OF_SCRIPTS = ("kernels", "show_output")


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store FILE`, of all verbs over measurements."""
    return click.option(
        "--store",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        default=lambda: os.environ.get("WAVECAST_STORE", STORE),
        show_default=STORE,
        help="The file of measurements.",
    )(command)


class _WithScriptArguments(click.Command):
    """What follows `--` is a script's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        separator = args.index("--") if "--" in args else len(args)
        ctx.meta[_AFTER] = tuple(args[separator + 1 :])
        return super().parse_args(ctx, args[:separator])


@click.command(
    "bench",
    cls=_WithScriptArguments,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast bench rms_norm -a rows=1,64,8192 -a columns=4096 --arch gfx942,gfx1100

    wavecast bench matmul -a m=2^4..2^12 -a n=4096 -a k=4096 --timing graph --label main

    wavecast bench mykernels:attention -a tokens=1024:8192:1024 --arch gfx950 --execute

    wavecast bench train_step.py -k attention --arch gfx942 -- --layers 2
    """,
)
@click.argument("names", nargs=-1, required=True, metavar="OPERATOR|MODULE:FUNCTION|SCRIPT.py...")
@click.option("-a", "--axis", "axes", multiple=True, metavar="NAME=VALUES",
              help="Values of an axis: 1,16,4096, FIRST:LAST:STEP, 2^4..2^12.")  # fmt: skip
@click.option("--arch", default="", metavar="GPU[,GPU…]",
              help="Predict for these GPUs. Default: measure on the local GPU.")  # fmt: skip
@click.option("--cache", type=click.Choice(["cold", "warm"]), default="cold", show_default=True,
              help="GPU: whether inputs are in the caches.")  # fmt: skip
@click.option("--timing", type=click.Choice(["events", "graph"]), default="events",
              show_default=True,
              help="GPU: events around a call, or a replayed graph.")  # fmt: skip
@click.option("--seconds", type=NumberRange(0.001, 1e6), default=3.0, show_default=True,
              help="GPU: time limit per subject.")  # fmt: skip
@click.option("--samples", type=count(1), default=500, show_default=True,
              help="GPU: largest number of samples per subject.")  # fmt: skip
@click.option("--precision", type=NumberRange(1e-6, 100), default=0.5, show_default=True,
              metavar="PERCENT",
              help="GPU: stop when the interval of the median is this narrow.")  # fmt: skip
@click.option("--no-verify", is_flag=True, help="GPU: do not check results.")
@click.option("--execute", is_flag=True,
              help="Run the machine code on the emulator: exact counts and errors.")  # fmt: skip
@click.option("--check", is_flag=True, help="Run it and check for races, missing waits and more.")
@click.option("-k", "--kernels", default="", type=RegexParam(),
              help="Script: only kernels whose name matches.")  # fmt: skip
@click.option("--show-output", is_flag=True, help="Script: print its output to stderr.")
@click.option("--label", default="", help="Name of the run: main, pr-17.")
@click.option("--no-store", is_flag=True, help="Do not store the records.")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text",
              show_default=True)  # fmt: skip
@store_option
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    axes: tuple[str, ...],
    arch: str,
    label: str,
    no_store: bool,
    form: str,
    path: Path,
    **options: Any,
) -> int:
    """Measure operators of the library, Python functions, or the kernels of scripts.

    Operators and functions are measured at all combinations of their axes. A function takes the
    axes by name and returns what is called. Arguments after -- go to scripts. On a GPU, results
    are checked first, and subjects are timed alternately with GPU events. With --arch no GPU is
    needed: times are predicted, resources are read from the code and, with --execute, instructions,
    bytes and bank conflicts are counted on the emulator. Every record is stored immediately; Ctrl-C
    keeps the records so far and exits with 130. docs/bench.md has the details.
    """
    from wavecast import arch as known
    from wavecast.bench.store.sqlite import open_store

    scripts = [name for name in names if name.endswith(".py")]
    _check(ctx, names, scripts, axes, arch, options)
    sys.path.insert(0, os.getcwd())
    devices = [known.load(name.strip()) for name in arch.split(",") if name.strip()]
    with contextlib.ExitStack() as stack:
        measure = _prepared(names, scripts, axes, devices, label, ctx.meta[_AFTER], options)
        store = None if no_store else open_store(path)
        if store is not None:
            stack.callback(store.close)
        outcome = measure(store)
    return _shown(outcome, form, None if no_store else path)


Measuring = Callable[["Store | None"], "SessionResult"]


def _prepared(
    names: Sequence[str],
    scripts: Sequence[str],
    axes: Sequence[str],
    devices: Sequence[Device],
    label: str,
    script_arguments: tuple[str, ...],
    options: dict[str, Any],
) -> Measuring:
    """What measures, with its names and axes looked up. Raises for wrong ones before a store is
    opened."""
    from wavecast.bench.measure.axes import parse, points
    from wavecast.bench.measure.environment import new_run
    from wavecast.bench.measure.session import offline_measure, session
    from wavecast.bench.measure.workload import workload

    here = None if devices else _local()
    run = new_run(label)
    if scripts:
        from wavecast.bench.measure.script import MeasuredScript, script_session

        quiet = not options["show_output"]
        found = [
            MeasuredScript(Path(s), script_arguments, options["kernels"], quiet) for s in scripts
        ]

        def of_scripts(store: Store | None) -> SessionResult:
            with _bar(0) as (progress, _):
                return script_session(run, found, devices, store, progress, here)

        return of_scripts
    chosen = parse(axes)
    workloads = [workload(name, point) for name in names for point in points(chosen)]

    def of_workloads(store: Store | None) -> SessionResult:
        with _bar(len(workloads) * max(1, len(devices))) as (progress, sampling):
            if here is None:
                check = options["check"]
                measure = offline_measure(execute=options["execute"] or check, check=check)
                return session(run, workloads, devices, measure, store, progress)
            from wavecast.bench.measure.gpu_session import gpu_session

            settings = _settings(options)
            return gpu_session(run, workloads, here, settings, store, progress, sampling)

    return of_workloads


def _check(
    ctx: click.Context,
    names: Sequence[str],
    scripts: Sequence[str],
    axes: Sequence[str],
    arch: str,
    options: dict[str, Any],
) -> None:
    """Options that would have no effect are mistakes. Raises UsageError."""
    given = [
        name
        for name in options
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]

    def refuse(of: Sequence[str], why: str) -> None:
        wrong = [f"--{name.replace('_', '-')}" for name in of if name in given]
        if wrong:
            raise UsageError(f"{', '.join(wrong)}: {why}")

    if scripts and len(scripts) < len(names):
        raise UsageError("a script must be the only subject of a run")
    if scripts:
        if axes:
            raise UsageError("a script has no axes", hint="arguments for it follow --")
        refuse(_ON_GPU, "a script is timed as it runs, by the profiler")
        refuse(_ON_EMULATOR, "a script is executed by `wavecast run`")
    else:
        refuse(_OF_SCRIPTS, "for scripts only")
        if ctx.meta[_AFTER]:
            raise UsageError(f"{' '.join(ctx.meta[_AFTER])}: only scripts take arguments after --")
    if arch:
        refuse(_ON_GPU, "nothing is measured with --arch, times are predicted")
    else:
        refuse(_ON_EMULATOR, "say which GPU is emulated with --arch")


def _local() -> Any:
    """This machine's GPU. Raises UsageError where there is none to measure on."""
    from wavecast.bench.measure.gpu_environment import here

    try:
        return here()
    except WavecastError as error:
        raise UsageError(
            f"{error.message}: choose the GPUs to predict for with --arch",
            hint="--arch gfx942,gfx1100",
        ) from None


def _settings(options: dict[str, Any]) -> Any:
    from wavecast.bench.measure.gpu import GpuSettings
    from wavecast.bench.measure.sampling import SamplingBudget

    budget = SamplingBudget(options["seconds"], options["samples"], options["precision"] / 100)
    return GpuSettings(options["cache"], options["timing"], budget, verify=not options["no_verify"])


@contextlib.contextmanager
def _bar(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[str, int, float], None]]]:
    """A bar on stderr while a terminal watches: what tells it that a subject begins, and what its
    samples are."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield lambda _: None, lambda *_: None
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=errors, transient=True) as shown:
        task = shown.add_task("", total=total or None)
        begun = 0

        def begin(text: str) -> None:
            nonlocal begun
            shown.update(task, completed=min(begun, total) if total else None, description=text)
            begun += 1

        def sampled(key: str, samples: int, width: float) -> None:
            precise = f" ±{width:.1%}" if width < 1 else ""
            shown.update(task, description=f"{key}: {samples} samples{precise}")

        yield begin, sampled


def _shown(outcome: SessionResult, form: str, path: Path | None) -> int:
    """Print an outcome; the exit code."""
    from rich.console import Console

    from wavecast.cli import streams
    from wavecast.report import bench

    errors = Console(stderr=True, highlight=False)
    if form == "json":
        streams.as_document(sys.stdout)
        click.echo("[" + ",\n".join(record.to_json() for record in outcome.records) + "]")
        for line in bench.problems(outcome):
            errors.print(line, soft_wrap=True, markup=False)
    elif form == "html":
        from wavecast.report.recorded_html import page

        click.echo(page("wavecast bench", lambda console: bench.render(outcome, console)))
    else:
        bench.render(outcome, streams.console(None if sys.stdout.isatty() else 200))
        if path is not None:
            click.echo(f"run {outcome.run.id} in {path}", err=True)
    if outcome.interrupted:
        return INTERRUPTED
    if not outcome.records:
        raise NothingAnalysed("nothing was measured")
    return int(bool(outcome.failed) or any(record.refused for record in outcome.records))
