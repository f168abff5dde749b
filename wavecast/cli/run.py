"""`wavecast run`: a script's Triton launches, or one launch of a kernel in a file, executed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.cli import streams
from wavecast.cli.checking import CheckedCommand, Checking, check_options
from wavecast.cli.supervise import script_exit
from wavecast.cli.tracing import Tracing, trace_options
from wavecast.cli.types import PROCESSES, NumberRange, RegexParam, click_type, count
from wavecast.options.values import Dimensions

if TYPE_CHECKING:
    from wavecast.pipeline.hip_programs import ProgramOptions
    from wavecast.pipeline.plan import Plan
    from wavecast.pipeline.run_options import RunOptions

DEFAULT_ARCH = "gfx942"
"""What scripts and HIP source are compiled for when nobody says."""

_Grid = tuple[int, int, int]


@click.command(
    "run",
    cls=CheckedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast run test_matmul.py --arch gfx942

    wavecast run train.py --arch gfx1100 --threads 8 -- --steps 10

    wavecast run sum.hip --grid 2 --block 256 --arg input=f32[8192]:arange
    --arg output=f32[1]:zeros --arg quads=2048 --expect output=33550336

    wavecast run k.hsaco --args k.toml

    wavecast run nbody.hip --predict -- 1024

    wavecast run ./program --gpus 2

    wavecast run train.py --gpus 8

    wavecast run test_matmul.py --trace trace.json --perfetto waves.json

    wavecast run test_matmul.py --check

    wavecast run test_matmul.py --check determinism
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="", metavar="GPU",
              help="An AMD GPU by name (mi300x) or target. Default: the target of the code, or "
              f"{DEFAULT_ARCH}.")  # fmt: skip
@click.option("--threads", type=PROCESSES, default=None,
              help="Host threads to run workgroups on (default: all).")  # fmt: skip
@click.option("--max-instructions", type=count(1, (1 << 63) - 1), default=None, metavar="N",
              help="Abort a launch if a wave executes more instructions.")  # fmt: skip
@click.option("-k", "--kernels", default="", type=RegexParam(),
              help="Script: execute only kernels whose name matches.")  # fmt: skip
@click.option("--kernel", default="", metavar="NAME",
              help="Code: the kernel to launch, if there are several.")  # fmt: skip
@click.option("--grid", type=click_type(Dimensions()), help="Code: workgroups.")
@click.option("--block", type=click_type(Dimensions()), help="Code: work-items per workgroup.")
@click.option("--lds", type=count(), default=0, help="Code: dynamic LDS in bytes.")
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE",
              help="Code: an argument: n=4096, x=f32[4096]:random(0), w=w.npy.")  # fmt: skip
@click.option("--args", "plan_file", type=click.Path(path_type=Path), metavar="TOML",
              help="Code: a file with all of these; options override it.")  # fmt: skip
@click.option("--expect", multiple=True, metavar="NAME=VALUE",
              help="Code: expected contents of an array; exit with 1 if they differ.")  # fmt: skip
@click.option("--rtol", type=NumberRange(min=0), default=None,
              help="Relative tolerance of --expect.  [default: 1e-5]")  # fmt: skip
@click.option("--atol", type=NumberRange(min=0), default=None,
              help="Absolute tolerance of --expect.  [default: 1e-6]")  # fmt: skip
@click.option("--save", multiple=True, metavar="NAME=FILE",
              help="Code: write an array to a .npy file after the launch.")  # fmt: skip
@click.option("-X", "--compiler-option", multiple=True, metavar="OPTION",
              help="Passed to the HIP compiler, e.g. -X -DBLOCK=128.")  # fmt: skip
@click.option("--gpus", type=count(1, 64), default=1, show_default=True, metavar="N",
              help="Script, HIP program: the number of GPUs.")  # fmt: skip
@click.option("--once", is_flag=True,
              help="Script with --gpus: run it once with all GPUs, not once per GPU.")  # fmt: skip
@click.option("--predict", is_flag=True,
              help="HIP program: predict kernels; events have these times.")  # fmt: skip
@trace_options
@check_options
def command(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    threads: int | None,
    max_instructions: int | None,
    kernels: str,
    kernel: str,
    grid: _Grid | None,
    block: _Grid | None,
    lds: int,
    arguments: tuple[str, ...],
    plan_file: Path | None,
    expect: tuple[str, ...],
    rtol: float | None,
    atol: float | None,
    save: tuple[str, ...],
    compiler_option: tuple[str, ...],
    gpus: int,
    once: bool,
    predict: bool,
    tracing: Tracing,
    checking: Checking,
) -> int:
    """Execute kernels for an AMD GPU on this machine's processor.

    PATH is a Python script, HIP program, HIP file, assembly or code object. The Triton kernels of a
    script are executed where it launches them; its output, checks and exit code do not change, and
    arguments after -- go to it. With --gpus N it is run once per GPU, as torchrun does. A crash of
    the script is reported with its line. So is a HIP program run, built from source that has a main
    or as an executable (docs/hip.md). Of other files one kernel is launched with the arguments
    given here. Times of triton.testing are predictions for the GPU. docs/run.md describes
    arguments.
    """
    from wavecast.errors import InputError, UsageError
    from wavecast.pipeline.plan import Plan
    from wavecast.pipeline.run_options import RunOptions

    if not path.exists():
        raise InputError(f"no such file: {path}")
    options = RunOptions(arch, threads, max_instructions, tracing.mode, checking.reports)
    stated = Plan(kernel, grid, block, lds)
    if path.suffix == ".py":
        if stated != Plan() or arguments or plan_file or expect or save or compiler_option:
            raise UsageError(f"{path} is a script: it makes its own launches and arguments")
        ended = script_exit(path)
        if ended is not None:
            return ended
        with tracing.written(), checking.shown():
            return checking.code(_run_script(path, script_args, kernels, options, gpus, once))
    from wavecast.pipeline.hip_programs import ProgramOptions, is_program  # not for scripts

    if once:
        raise UsageError(f"--once is for scripts; {path} is run once")
    launches = stated != Plan() or arguments or plan_file or expect or save
    if not launches and not kernels and is_program(path):
        program = ProgramOptions(gpus, compiler_option, predict)
        with tracing.written(), checking.shown():
            return checking.code(_run_program(path, script_args, options, program))
    if script_args or kernels:
        raise UsageError(
            f"{path} is not a script; {' '.join(script_args) or '-k'} needs one",
            hint="--kernel NAME chooses a kernel, --arg NAME=VALUE gives an argument",
        )
    plan = _plan(stated, plan_file, arguments, expect, rtol, atol, save)
    with tracing.written(), checking.shown():
        return checking.code(_run_code(path, plan, options, compiler_option))


def _run_script(
    path: Path,
    script_args: tuple[str, ...],
    kernels: str,
    options: RunOptions,
    gpus: int,
    once: bool,
) -> int:
    from wavecast.errors import NothingAnalysed
    from wavecast.integrations.triton import run_script

    streams_before = sys.stdout, sys.stderr
    ended = run_script(
        path,
        script_args,
        options.arch or DEFAULT_ARCH,
        threads=options.threads,
        max_instructions=options.max_instructions,
        trace=options.trace or False,
        check=False if options.check is None else options.check,
        kernels=kernels,
        count=gpus,
        once=once,
    )
    sys.stdout, sys.stderr = streams_before  # a script may replace or delete them
    if ended.traceback:
        sys.stderr.write(ended.traceback)
    elif not ended.executed:
        if options.check and not ended.code:
            raise NothingAnalysed("the script launched no Triton kernel: nothing was checked")
        click.echo("wavecast: the script launched no Triton kernel", err=True)
    return ended.code


def _run_program(
    path: Path, arguments: tuple[str, ...], options: RunOptions, program: ProgramOptions
) -> int:
    from wavecast.pipeline.hip_programs import run_program
    from wavecast.report import hip_programs

    done = run_program(path, arguments, options, program)
    if program.predict:
        console = streams.console(stream=sys.stderr, highlight=False)
        hip_programs.render(done.kernels, console)
    if by_host := hip_programs.by_host(done.kernels):
        click.echo(f"wavecast: {by_host}", err=True)
    if done.ended.signal:
        click.echo(f"wavecast: {path} ended by {done.ended.signal_name}", err=True)
        return 128 + done.ended.signal
    if not done.connected:
        click.echo("wavecast: the program made no call of HIP", err=True)
    return done.ended.code


def _plan(
    stated: Plan,
    plan_file: Path | None,
    arguments: tuple[str, ...],
    expect: tuple[str, ...],
    rtol: float | None,
    atol: float | None,
    save: tuple[str, ...],
) -> Plan:
    from dataclasses import replace

    from wavecast.pipeline.plan import ATOL, RTOL, Planned, named_value, read_plan

    given = {name: Planned(value) for name, value in map(named_value, arguments)}
    plan = replace(stated, arguments=given)
    if plan_file is not None:
        plan = plan.over(read_plan(plan_file))
    for name, value in map(named_value, expect):
        tolerances = RTOL if rtol is None else rtol, ATOL if atol is None else atol
        plan = plan.with_expected(name, value, *tolerances)
    for name, value in map(named_value, save):
        plan = plan.with_saved(name, Path(value))
    return plan


def _run_code(
    path: Path, plan: Plan, options: RunOptions, compiler_options: tuple[str, ...]
) -> int:
    from wavecast.pipeline.execution import execute_code
    from wavecast.report import execution

    done = execute_code(path, plan, options, compiler_options)
    execution.render(done, streams.console())
    return 0 if done.as_expected else 1
