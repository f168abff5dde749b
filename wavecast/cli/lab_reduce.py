"""`wavecast lab reduce`: a smaller input for which something still holds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wavecast.cli import streams
from wavecast.errors import UnknownName, UsageError


@click.command(
    "reduce",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast lab reduce kernel.ll --arch gfx1100 --if lost-wait -o report.md

    wavecast lab reduce kernel.ll --arch gfx942 --if "spills>10" --compiler llc-22

    wavecast lab reduce kernel.ll --arch gfx942 --if crash --compiler triton --edit iglp_opt=1
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("-a", "--arch", required=True, metavar="GPU", help="An AMD GPU or target.")
@click.option("--if", "condition", required=True, metavar="CONDITION",
              help="crash, lost-wait, missing-wait, hazard, instructions>N, vgprs>N, spills>N.",
              )  # fmt: skip
@click.option("--compiler", default="triton", show_default=True, metavar="triton|PROGRAM",
              help="Triton's code generator, or an llc program.")  # fmt: skip
@click.option("--option", "options", multiple=True, metavar="OPTION",
              help="Option of llc, such as --option=-enable-misched=0.")  # fmt: skip
@click.option("--edit", "edits", multiple=True, metavar="AXIS=VALUE",
              help="Change the IR first: iglp_opt or sched_group_barrier.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the report to this file instead of standard output.")  # fmt: skip
def reduce(
    path: Path,
    arch: str,
    condition: str,
    compiler: str,
    options: tuple[str, ...],
    edits: tuple[str, ...],
    output: Path | None,
) -> int:
    """Reduce the LLVM IR in PATH while CONDITION holds, and write a report for an issue.

    The report has the reduced IR, the command, what was expected and what was found. Exit codes: 0;
    2 if the condition does not hold for the input.
    """
    from wavecast import files
    from wavecast.lab.codegen import Llc, TritonGenerator, find_llc
    from wavecast.lab.edits import EDITS
    from wavecast.lab.reduce import Condition, reduced
    from wavecast.lab.reproducer import Reproducer
    from wavecast.pipeline import select

    wanted = Condition(condition)
    device = select([arch], ()).devices[0]
    text = files.read_text(path)
    for edit in edits:
        name, _, value = edit.partition("=")
        if name not in EDITS:
            raise UnknownName("axis", name, EDITS)
        text = EDITS[name](text, value)
    if compiler == "triton":
        if options:
            raise UsageError("--option is for llc", hint="--compiler llc")
        generator = TritonGenerator(device)
    else:
        generator = Llc(find_llc(compiler), device.target, options)
    wanted = wanted.like(text, generator)
    with streams.progress(lines=True) as update:
        smaller = reduced(text, lambda one: wanted.holds(one, generator, device.target), update)
    report = Reproducer(smaller, wanted, generator, device.target, text.count("\n") + 1)
    if output is None:
        sys.stdout.write(report.markdown())
    else:
        files.write_text(output, report.markdown())
    return 0


__all__ = ["reduce"]
