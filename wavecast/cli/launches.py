"""Options that state the launch of code that no script launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli.types import RegexParam, click_type, count
from wavecast.errors import UsageError
from wavecast.options.values import Dimensions

if TYPE_CHECKING:
    from wavecast.lab.searching import LabSource
    from wavecast.pipeline.plan import Plan

Command = Callable[..., Any]


def stated_plan(path: Path, arguments: tuple[str, ...], plan_file: Path | None) -> Plan:
    """The launch that a file and options state. Raises UsageError for a script."""
    from wavecast.pipeline.plan import Plan, Planned, named_value, read_plan

    if path.suffix == ".py" and (arguments or plan_file is not None):
        raise UsageError(f"{path} is a script: it makes its own launches and arguments")
    plan = Plan(arguments={name: Planned(value) for name, value in map(named_value, arguments)})
    return plan if plan_file is None else plan.over(read_plan(plan_file))


_SOURCE = (
    click.argument("path", type=click.Path(path_type=Path)),
    click.argument("script_args", nargs=-1, type=click.UNPROCESSED),
    click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
                 help="AMD GPUs by name (mi300x) or target (gfx942)."),
    click.option("--arch-file", multiple=True, type=click.Path(path_type=Path),
                 help="TOML that adds a device or overrides facts of one."),
    click.option("-k", "--kernels", default="", type=RegexParam(),
                 help="Only kernels whose name matches."),
    click.option("--grid", type=click_type(Dimensions()),
                 help="Workgroups, for code that no script launches."),
    click.option("--block", type=click_type(Dimensions()),
                 help="Threads per workgroup, for code that no script launches."),
    click.option("--lds", type=count(), default=0,
                 help="Dynamic LDS in bytes, for code that no script launches."),
    click.option("--arg", "plan_arguments", multiple=True, metavar="NAME=VALUE",
                 help="An argument of code that no script launches: n=4096, x=f32[4096]."),
    click.option("--args", "plan_file", type=click.Path(path_type=Path), metavar="TOML",
                 help="A file with grid, block and arguments; options override it."),
    click.option("-X", "--compiler-option", multiple=True, metavar="OPTION",
                 help="Passed to the HIP compiler, e.g. -X -DBLOCK=128."),
    click.option("--show-output", is_flag=True, help="Print the script's output to stderr."),
)  # fmt: skip


def source_options(command: Command) -> Command:
    """The arguments and options that `lab_source` takes, on a command of the laboratory."""
    for option in reversed(_SOURCE):
        command = option(command)
    return command


def lab_source(
    *,
    path: Path,
    script_args: tuple[str, ...],
    arch_file: tuple[Path, ...],
    kernels: str,
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    lds: int,
    plan_arguments: tuple[str, ...],
    plan_file: Path | None,
    compiler_option: tuple[str, ...],
    show_output: bool,
) -> LabSource:
    """Where the kernels of a command of the laboratory are from. Raises UsageError."""
    from wavecast.lab.searching import LabSource
    from wavecast.pipeline.plan import Plan

    plan = stated_plan(path, plan_arguments, plan_file)
    if path.suffix == ".py" and (grid or block or lds or compiler_option):
        raise UsageError(f"{path} is a script: it makes its own launches and arguments")
    return LabSource(
        path,
        script_args,
        kernels,
        not show_output,
        tuple(str(file.absolute()) for file in arch_file),
        Plan(grid=grid, block=block, dynamic_lds=lds).over(plan),
        compiler_option,
    )


__all__ = ["lab_source", "source_options", "stated_plan"]
